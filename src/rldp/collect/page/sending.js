// A report goes to the server of this page, again and again until it is acknowledged.

const LONGEST = 30_000; // milliseconds between two attempts

/** What is sent, and nothing else. */
export function bodyOf(fingerprint, invitation, { id, report }) {
  const entry = { id, protocol: fingerprint, report };
  if (invitation) entry.invitation = invitation;
  return JSON.stringify({ version: 1, reports: [entry] });
}

export class RefusedError extends Error {}

/** Send until it is acknowledged; `onwait` is told that it has to wait. A refusal is an error. */
export async function send(body, onwait) {
  for (let pause = 1_000; ; pause = Math.min(2 * pause, LONGEST)) {
    let wait = pause;
    try {
      const response = await fetch("/v1/reports", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
        credentials: "omit",
        cache: "no-store",
        referrerPolicy: "no-referrer",
      });
      if (response.ok) return;
      if (response.status < 500 && response.status !== 429 && response.status !== 408) {
        const told = await response.json().catch(() => ({}));
        throw new RefusedError(told.results?.[0]?.error ?? told.error ?? String(response.status));
      }
      wait = Math.max(pause, 1_000 * (Number(response.headers.get("retry-after")) || 0));
    } catch (error) {
      if (error instanceof RefusedError) throw error;
    }
    onwait();
    await patience(wait);
  }
}

/** Until some time has passed, or the device is online again. */
function patience(milliseconds) {
  return new Promise((resolve) => {
    const go = () => {
      clearTimeout(timer);
      removeEventListener("online", go);
      resolve();
    };
    const timer = setTimeout(go, milliseconds);
    addEventListener("online", go);
  });
}
