// Requests to the server of this page; every error has the field it belongs to.

const token = document.querySelector('meta[name="studio-token"]').content;

export class StudioError extends Error {
  constructor(message, field, status) {
    super(message);
    this.field = field;
    this.status = status;
  }
}

const gone = () => new StudioError("The studio does not answer. Is it still running in its terminal?", "step", 0);

async function answered(request) {
  let response;
  try {
    response = await request;
  } catch (error) {
    throw error.name === "AbortError" ? error : gone();
  }
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw new StudioError(told.error ?? `The studio answered ${response.status}.`, told.field ?? "step", response.status);
}

export async function get(path) {
  return (await answered(fetch(`/api/${path}`))).json();
}

const sent = (path, body, signal) =>
  answered(
    fetch(`/api/${path}`, {
      method: "POST",
      signal,
      headers: { "content-type": "application/json", "x-studio-token": token },
      body: JSON.stringify(body),
    }),
  );

export async function post(path, body = {}, signal) {
  return (await sent(path, body, signal)).json();
}

// A file as it is; the browser tells how much has been sent.
export function upload(file, onprogress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", `/api/files?name=${encodeURIComponent(file.name)}`);
    request.setRequestHeader("content-type", "application/octet-stream");
    request.setRequestHeader("x-studio-token", token);
    request.responseType = "json";
    request.upload.onprogress = (event) => onprogress?.(event.loaded / (event.total || 1));
    request.onload = () => {
      const told = request.response ?? {};
      if (request.status === 200) resolve(told);
      else reject(new StudioError(told.error ?? `The studio answered ${request.status}.`, told.field ?? "data", request.status));
    };
    request.onerror = () => reject(gone());
    request.send(file);
  });
}

// What the server makes from a choice, saved under the name that it gives.
export async function download(what, choice) {
  const response = await sent(`download/${what}`, choice);
  const name = /filename="([^"]+)"/.exec(response.headers.get("content-disposition"))?.[1] ?? what;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  return name;
}

// Watch a job until it ends, telling of each look at it; `isWanted` ends the watching.
export async function follow(job, tell, isWanted = () => true) {
  let current = job;
  while (isWanted()) {
    tell(current);
    if (current.state !== "running") return current;
    await new Promise((resolve) => setTimeout(resolve, 250));
    current = await get(`jobs/${current.id}`);
  }
  return null;
}

export const stop = (job) => post(`jobs/${job.id}/stop`);
