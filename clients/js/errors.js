/** What can go wrong. */

/** A file that is no public protocol, or is damaged. */
export class ProtocolError extends Error {
  name = "ProtocolError";
}

/** A record, an id or a key that cannot be used as it is. */
export class RecordError extends Error {
  name = "RecordError";
}
