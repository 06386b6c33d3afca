// One report per person: what was drawn is kept on this device, and nothing else is drawn again.

const encoder = new TextEncoder();

async function nameOf(fingerprint, invitation) {
  if (!invitation) return `rldp ${fingerprint}`;
  const digest = await crypto.subtle.digest("SHA-256", encoder.encode(invitation)); // not the secret itself
  return `rldp ${fingerprint} ${hexadecimal(new Uint8Array(digest).slice(0, 16))}`;
}

export const hexadecimal = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** The report that this device keeps for a protocol, {id, report, agreed, sent}, or null. */
export async function keptReport(fingerprint, invitation) {
  const text = localStorage.getItem(await nameOf(fingerprint, invitation));
  return text === null ? null : JSON.parse(text);
}

/** Keep a new report unless there is one by now; the one that is kept. */
export async function keepReport(fingerprint, invitation, draw) {
  const name = await nameOf(fingerprint, invitation);
  const work = () => {
    const text = localStorage.getItem(name);
    if (text !== null) return JSON.parse(text);
    const kept = { id: hexadecimal(crypto.getRandomValues(new Uint8Array(16))), report: draw(), agreed: false, sent: false };
    localStorage.setItem(name, JSON.stringify(kept)); // before anyone sees it
    return kept;
  };
  return navigator.locks ? navigator.locks.request(name, work) : work(); // two windows may be open
}

/** The number of the block that this device has drawn of a questionnaire; drawn by `draw` on the first visit. */
export async function keptBlock(fingerprint, draw) {
  const name = `${await nameOf(fingerprint, null)} block`;
  const work = () => {
    const text = localStorage.getItem(name);
    if (text !== null) return JSON.parse(text);
    const number = draw();
    localStorage.setItem(name, JSON.stringify(number)); // before anyone sees its questions
    return number;
  };
  return navigator.locks ? navigator.locks.request(name, work) : work();
}

/** Keep what has become of the report: `agreed`, someone pressed Send; `sent`, it has arrived. */
export async function mark(fingerprint, invitation, kept, changes) {
  Object.assign(kept, changes);
  localStorage.setItem(await nameOf(fingerprint, invitation), JSON.stringify(kept));
}

/** Whether this browser keeps anything: without that a second visit would draw a second report. */
export function canKeep() {
  try {
    localStorage.setItem("rldp", "1");
    localStorage.removeItem("rldp");
    return true;
  } catch {
    return false;
  }
}
