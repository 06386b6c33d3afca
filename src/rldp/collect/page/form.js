// The form: questions, one report drawn on this device, what it tells, and sending it.

import { load } from "./client/rldp.js";
import { loadQuestionnaire } from "./client/questionnaire.js";
import { conclusions } from "./conclusions.js";
import { h, say, show } from "./dom.js";
import { canKeep, keepReport, keptBlock, keptReport, mark } from "./kept.js";
import { bodyOf, RefusedError, send } from "./sending.js";
import { bestLanguage, textsOf } from "./texts.js";

const MOST_BUTTONS = 12; // answers that are shown all at once
const state = { survey: null, p: null, invitation: null, language: null, told: (name) => name, texts: null };

async function start() {
  const given = new URLSearchParams(location.hash.slice(1));
  state.invitation = given.get("i");
  try {
    const response = await fetch("/v1/survey", { cache: "no-store" });
    if (!response.ok) throw new Error(String(response.status));
    state.survey = await response.json();
  } catch {
    return show(h("h1", {}, "The survey cannot be reached."), button("Try again", () => location.reload()));
  }
  const offered = Object.keys(state.survey.languages);
  choose(bestLanguage(offered, navigator.languages));
  await open(given.get("p"));
}

function choose(language) {
  state.language = language;
  state.texts = state.survey.languages[language];
  state.told = textsOf(state.texts.page);
  document.documentElement.lang = language;
  document.title = state.texts.title || state.told("title");
}

/** The protocol of the invitation, or of the page; a kept report of an earlier one goes first. */
async function open(pinned) {
  const { survey, told, invitation } = state;
  const known = [survey.fingerprint, ...survey.earlier];
  if (pinned && !known.includes(pinned)) return stop(told("other_protocol"));
  if (!canKeep()) return stop(told("cannot_keep"));
  let fingerprint = pinned ?? survey.fingerprint;
  for (const earlier of pinned ? [] : survey.earlier)
    if (await keptReport(earlier, invitation)) fingerprint = earlier;
  try {
    const file = await (await fetch(`/v1/protocols/${fingerprint}`)).arrayBuffer();
    state.p = await protocolOf(file, invitation);
  } catch (error) {
    return stop(`${told("bad_protocol")} ${error.message}`);
  }
  if (state.p.fingerprint !== fingerprint) return stop(told("other_protocol"));
  const kept = await keptReport(fingerprint, invitation);
  if (kept) return shownReport(kept, null, true);
  if (survey.invited && !invitation) return stop(told("no_invitation"));
  return questions();
}

/** The protocol in a file; of a questionnaire the one of the block that this person is asked about. */
async function protocolOf(file, invitation) {
  if (JSON.parse(new TextDecoder().decode(file)).format !== "rldp-questionnaire-client") return load(file);
  const q = await loadQuestionnaire(file);
  return q.block(invitation ? await q.blockOf(invitation) : await keptBlock(q.fingerprint, () => q.drawBlock()));
}

const stop = (text) => show(h("h1", {}, state.texts.title || state.told("title")), h("p", { class: "note", role: "alert" }, text));
const button = (text, onclick, more = {}) => h("button", { type: "button", onclick, ...more }, text);

function languages() {
  const offered = Object.keys(state.survey.languages);
  if (offered.length < 2) return null;
  const names = (tag) => new Intl.DisplayNames([tag], { type: "language" }).of(tag) ?? tag;
  const select = h("select", { id: "language", onchange: () => { choose(select.value); questions(); } },
    offered.map((tag) => h("option", { value: tag, lang: tag, selected: tag === state.language }, names(tag))));
  return h("p", { class: "language" }, h("label", { for: "language" }, state.told("language")), " ", select);
}

function questions() {
  const { p, told, texts } = state;
  const columns = new Map([...(p.readsSensitive ? p.sensitive : []), ...p.useful].map((column) => [column.name, column]));
  const asked = texts.questions.filter((question) => columns.has(question.column));
  const form = h("form", { novalidate: true, onsubmit: (event) => { event.preventDefault(); answered(form, asked); } },
    asked.map(questionOf),
    h("p", { id: "missing", class: "error", role: "alert", hidden: true }),
    h("button", { type: "submit", id: "draw" }, told("draw")),
    h("p", { class: "quiet" }, told("draw_hint")));
  show(languages(), h("h1", {}, texts.title || told("title")), texts.introduction && h("p", {}, texts.introduction),
    h("p", { class: "promise" }, told("promise")), form, footer());
}

function questionOf({ column, text, hint, answers }, place) {
  const id = `q${place}`;
  const about = hint ? { "aria-describedby": `${id}-hint` } : {};
  const below = hint && h("p", { class: "quiet", id: `${id}-hint` }, hint);
  if (answers.length > MOST_BUTTONS) {
    const options = answers.map((answer) => h("option", { value: answer.label }, answer.text));
    return h("div", { class: "question" }, h("label", { for: id }, text), below,
      h("select", { id, name: column, required: true, ...about }, h("option", { value: "" }, state.told("choose")), options));
  }
  return h("fieldset", { class: "question", ...about }, h("legend", {}, text), below,
    answers.map((answer, i) => h("div", { class: "answer" },
      h("input", { type: "radio", id: `${id}-${i}`, name: column, value: answer.label, required: true }),
      h("label", { for: `${id}-${i}` }, answer.text))));
}

async function answered(form, asked) {
  const { p, told, invitation } = state;
  const record = Object.fromEntries(new FormData(form));
  const open = asked.find(({ column }) => !record[column] && !(column in record && record[column] === "" && has(column, "")));
  if (open) {
    const line = document.getElementById("missing");
    line.textContent = told("missing", { question: open.text });
    line.hidden = false;
    form.querySelector(`[name="${CSS.escape(open.column)}"]`).focus();
    return;
  }
  const [, u] = p.codes(record);
  let drawn;
  const kept = await keepReport(p.fingerprint, invitation, () => {
    drawn = p.draw(...p.codes(record), crypto.getRandomValues(new BigUint64Array(p.words)));
    return p.label(drawn);
  });
  form.reset(); // the answers are not needed any more
  shownReport(kept, drawn === undefined ? null : { report: drawn, u }, false);
}

const has = (column, label) => [...state.p.sensitive, ...state.p.useful].some(({ name, labels }) => name === column && labels.includes(label));

/** The report, what it tells, and the button that sends it. */
function shownReport(kept, drawn, isSecondVisit) {
  const { p, told, invitation } = state;
  const body = bodyOf(p.fingerprint, invitation, kept);
  const status = h("p", { id: "status", role: "status" });
  const sending = button(told(kept.sent ? "send_again" : "send"), () => sendIt(body, kept, status, sending), { id: "send" });
  const told_by = drawn ? conclusions(p, drawn.report, drawn.u, told) : [];
  if (kept.sent) status.textContent = told("was_sent");
  show(h("h1", {}, told("your_report")),
    isSecondVisit && h("p", { class: "promise" }, told("second_visit")),
    isSecondVisit && !kept.agreed && !kept.sent && h("p", { id: "unsent", class: "note" }, told("not_sent")),
    p.fingerprint !== state.survey.fingerprint && h("p", { class: "note" }, told("earlier_protocol")),
    h("p", { class: "report" }, h("output", { id: "report" }, kept.report)),
    h("p", {}, told("report_is_random")),
    told_by.length > 0 && [h("h2", {}, told("what_it_tells")), h("dl", {}, told_by.map(({ whom, text }) => [h("dt", {}, whom), h("dd", {}, text)]))],
    h("p", { class: "actions" }, sending), status,
    h("details", {}, h("summary", {}, told("exactly")), h("pre", { id: "body", tabindex: 0 }, body)), footer());
  if (kept.agreed && !kept.sent) sendIt(body, kept, status, sending); // Send was pressed on an earlier visit
}

/** Send what someone agreed to send, by the button now or before the connection was lost. */
async function sendIt(body, kept, status, sending) {
  const { p, told, invitation } = state;
  sending.disabled = true;
  document.getElementById("unsent")?.remove();
  status.textContent = told("sending");
  await mark(p.fingerprint, invitation, kept, { agreed: true });
  try {
    await send(body, () => { status.textContent = told("waiting"); });
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error;
    await mark(p.fingerprint, invitation, kept, { agreed: false }); // a later visit asks again
    status.textContent = told("refused", { reason: error.message });
    sending.disabled = false;
    return;
  }
  await mark(p.fingerprint, invitation, kept, { sent: true });
  status.textContent = told("sent");
  sending.hidden = true;
  say(told("sent"));
}

function footer() {
  const { p, told, texts } = state;
  return h("footer", {}, texts.contact && h("p", {}, texts.contact),
    h("details", {}, h("summary", {}, told("about_protocol")),
      h("p", {}, told("claims")), h("ul", {}, p.claimsInWords().map((text) => h("li", { lang: "en" }, text))),
      h("p", { class: "fingerprint" }, `${told("fingerprint")} `, h("code", {}, p.fingerprint))));
}

start();
