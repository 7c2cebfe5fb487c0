// The page: asks the program in its worker, and shows what it says. It computes nothing of its own.
'use strict';
const $ = (id) => document.getElementById(id);
const words = (bytes) => new TextDecoder().decode(bytes);

// ---------------------------------------------------------------- the program and its worker

/** The compiled program. It is inside this page: nothing is loaded. */
const compiled = (async () => {
  const packed = Uint8Array.from(atob($('program').textContent), (c) => c.charCodeAt(0));
  $('program').remove();
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return WebAssembly.compile(await new Response(stream).arrayBuffer());
})();

class Refused extends Error {}
let worker = null;
let waiting = new Map();
let asked = 0;

async function start() {
  const module = await compiled;
  const address = URL.createObjectURL(new Blob([$('worker').textContent], { type: 'text/javascript' }));
  worker = new Worker(address);
  worker.onmessage = ({ data }) => {
    if (data.stage !== undefined) return progress(data);
    if (data.broken !== undefined) return broken(data.broken);
    const { done, failed } = waiting.get(data.n);
    waiting.delete(data.n);
    if (data.refused) failed(new Refused(words(data.answer)));
    else done(data.answer);
  };
  worker.onerror = (e) => broken(e.message);
  worker.postMessage({ module });
}

/** Asks the program. Parts are texts or bytes. */
async function ask(call, ...given) {
  if (!worker) await start();
  const n = ++asked;
  return new Promise((done, failed) => {
    waiting.set(n, { done, failed });
    worker.postMessage({ n, call, given });
  });
}
const askJson = async (call, ...given) => JSON.parse(words(await ask(call, ...given)));

/** Ends the worker, and with it whatever it computes. */
function stop(reason) {
  worker?.terminate();
  worker = null;
  const left = waiting;
  waiting = new Map();
  for (const { failed } of left.values()) failed(new Refused(reason));
}

function broken(said) {
  stop(/memory|grow|unreachable/i.test(said)
    ? `The browser could not finish: ${said}. A table that large needs the command: dvim fit.`
    : `The program stopped: ${said}`);
}

// ---------------------------------------------------------------- small things

function complain(error) {
  $('alert').textContent = error ? error.message.replace(/^error: /, '') : '';
  if (error) $('alert').scrollIntoView({ block: 'nearest' });
  if (error && !(error instanceof Refused)) throw error;
}
const say = (text) => { $('live').textContent = text; };
function option(value, text, selected) {
  const out = new Option(text, value, selected, selected);
  return out;
}

// ---------------------------------------------------------------- 1. the table

let file = null;
let opened = null;

async function take(name, bytes) {
  complain(null);
  for (const id of ['columns', 'checked', 'result']) $(id).hidden = true;
  try {
    opened = await askJson('dvim_open', name, bytes);
    file = { name, bytes };
  } catch (e) {
    $('table').textContent = '';
    return complain(e);
  }
  $('table').textContent = `${name}: ${opened.n_rows.toLocaleString('en')} rows, ${opened.columns.length} columns.`;
  const { guess } = opened;
  for (const part of ['time', 'event', 'treatment', 'id']) {
    $(part).replaceChildren(
      ...(part === 'id' || !guess[part] ? [option('', part === 'id' ? 'none' : 'choose', !guess[part])] : []),
      ...opened.columns.map((c) => option(c.name, c.name, c.name === guess[part])));
  }
  $('horizon').value = guess.horizon ?? '';
  covariates();
  $('columns').hidden = false;
  say(`${$('table').textContent} Now the columns.`);
}

/** The columns that play no other part, each with a box to tick. Those that were unticked stay so. */
function covariates() {
  const off = new Set([...document.querySelectorAll('#covariates input:not(:checked)')].map((i) => i.value));
  const taken = new Set(['time', 'event', 'treatment', 'id'].map((part) => $(part).value));
  $('covariates').replaceChildren(...opened.columns.filter((c) => !taken.has(c.name)).map((c) => {
    const label = document.createElement('label');
    const box = Object.assign(document.createElement('input'), { type: 'checkbox', value: c.name, checked: !off.has(c.name) });
    const kind = c.kind === 'number' && c.range ? c.range.map((v) => Number(v.toPrecision(4))).join(' to ') : c.levels ? c.levels.slice(0, 4).join(', ') : c.kind;
    const note = Object.assign(document.createElement('span'), { className: 'note', textContent: kind + (c.n_missing ? `; ${c.n_missing} missing` : '') });
    label.append(box, ` ${c.name} `, note);
    return label;
  }));
}
for (const part of ['time', 'event', 'treatment', 'id']) $(part).addEventListener('change', covariates);

async function takeFile(chosen) {
  if (chosen) await take(chosen.name, await chosen.arrayBuffer());
}
$('file').addEventListener('change', () => takeFile($('file').files[0]));
$('demo').addEventListener('click', async () => {
  $('file').value = '';
  await take('cohort.csv', await ask('dvim_demo').catch(complain));
});
for (const type of ['dragover', 'drop']) {
  addEventListener(type, (e) => {
    e.preventDefault();
    $('drop').classList.toggle('over', type === 'dragover');
    if (type === 'drop') takeFile(e.dataTransfer.files[0]);
  });
}
addEventListener('dragleave', () => $('drop').classList.remove('over'));

// ---------------------------------------------------------------- 2. the question, 3. the check

function question() {
  const off = [...document.querySelectorAll('#covariates input:not(:checked)')].map((i) => i.value);
  const roles = {
    time: $('time').value, event: $('event').value, treatment: $('treatment').value, horizon: Number($('horizon').value.replace(',', '.')),
    numeric: [], categorical: [], drop: off, filters: [], missing: $('missing').value, zero_time: 'refuse',
  };
  if ($('id').value) roles.id = $('id').value;
  for (const part of ['time', 'event', 'treatment']) if (!roles[part]) throw new Refused(`Choose the column of the ${part}.`);
  if (!(roles.horizon > 0) || !Number.isFinite(roles.horizon)) throw new Refused('The horizon must be a number above 0, in the unit of the time column.');
  return JSON.stringify({ roles, adjusted: document.querySelector('input[name=estimator]:checked').value === 'adjusted' });
}

$('form').addEventListener('submit', async (e) => {
  e.preventDefault();
  complain(null);
  try {
    showCheck(await askJson('dvim_check', question()));
    $('step-check').focus();
  } catch (error) {
    complain(error);
  }
});

function showCheck({ refused, overview, problems }) {
  $('checked').hidden = false;
  $('check-word').textContent = refused ? 'This table cannot be analysed yet. Each finding says what to do.'
    : problems.trim() ? 'This table can be analysed. Some things are worth knowing.' : 'This table can be analysed. Nothing is wrong with it.';
  $('problems').textContent = problems;
  $('problems').hidden = !problems.trim();
  $('overview').textContent = overview;
  say($('check-word').textContent);
}

// ---------------------------------------------------------------- 4. the analysis

function progress({ stage, done, total }) {
  $('stage').textContent = stage[0].toUpperCase() + stage.slice(1) + (total > 1 ? `: ${done.toLocaleString('en')} of ${total.toLocaleString('en')}` : '');
  if (total > 1) $('progress').value = done / total;
  else $('progress').removeAttribute('value');
}

$('fit').addEventListener('click', async () => {
  complain(null);
  $('result').hidden = true;
  $('stage').textContent = 'Starting';
  $('progress').removeAttribute('value');
  try {
    const json = question();
    const check = await askJson('dvim_check', json);
    showCheck(check);
    if (check.refused) return $('step-check').focus();
    $('fit').disabled = true;
    $('working').hidden = false;
    $('cancel').focus();
    // An analysis stays in its worker until the worker ends: another one begins in a new one.
    stop('');
    await ask('dvim_open', file.name, file.bytes);
    const from = performance.now();
    const found = await askJson('dvim_fit', json);
    await showResult(found);
    document.documentElement.dataset.seconds = ((performance.now() - from) / 1000).toFixed(2);
  } catch (e) {
    complain(e);
  } finally {
    $('fit').disabled = false;
    $('working').hidden = true;
  }
});
$('cancel').addEventListener('click', () => stop('Cancelled. Nothing was kept but the table.'));

const FILES = { 'report.html': 'text/html', 'effects.csv': 'text/csv', 'weights.csv': 'text/csv', 'summary.json': 'application/json' };
let addresses = [];
function address(part, type) {
  addresses.push(URL.createObjectURL(new Blob([part], { type })));
  return addresses.at(-1);
}

async function showResult(found) {
  addresses.forEach((a) => URL.revokeObjectURL(a));
  addresses = [];
  $('summary').textContent = found.text;
  const links = [];
  for (const [name, type] of Object.entries(FILES)) {
    const href = address(await ask('dvim_file', name), `${type};charset=utf-8`);
    links.push(Object.assign(document.createElement('a'), { href, download: name, textContent: name }));
  }
  $('files').replaceChildren(...links);
  // The copy on show follows links by the bridge; this page's own policy, which frames inherit, stands in for the report's.
  const report = words(await ask('dvim_file', 'report.html'))
    .replace(/<meta http-equiv="Content-Security-Policy"[^>]*>/, '')
    .replace('</body>', () => `<script>${$('bridge').textContent}<\/script></body>`);
  $('frames').replaceChildren(
    frame('report', 'Report', address(report, 'text/html;charset=utf-8')),
    frame('explorer', 'Explorer', await explorer()));
  show('report');
  $('result').hidden = false;
  $('step-result').focus();
  say('The result is there.');
}

function frame(id, title, src) {
  return Object.assign(document.createElement('iframe'), { id, title, src });
}

function show(which) {
  for (const id of ['report', 'explorer']) {
    $(id).hidden = id !== which;
    $(`show-${id}`).setAttribute('aria-pressed', String(id === which));
  }
}
for (const id of ['report', 'explorer']) $(`show-${id}`).addEventListener('click', () => show(id));

/** What the explorer answers: its status and its text. */
async function explore(method, path, body) {
  const text = words(await ask('dvim_explore', method, path, body));
  const end = text.indexOf('\n');
  return { status: Number(text.slice(0, end)), text: text.slice(end + 1) };
}

/** The page of `dvim explore`, with its parts inside. */
async function explorer() {
  const part = async (path) => (await explore('GET', path, '')).text;
  const page = new DOMParser().parseFromString(await part('/'), 'text/html');
  const icon = `data:image/svg+xml,${encodeURIComponent(await part('/icon.svg'))}`;
  page.querySelectorAll('img').forEach((img) => img.setAttribute('src', icon));
  page.querySelectorAll('link, script').forEach((e) => e.remove());
  const put = async (tag, to, text, type) => {
    const element = page.createElement(tag);
    if (type) element.type = type;
    element.textContent = text;
    to.append(element);
  };
  await put('style', page.head, await part('/style.css'));
  await put('script', page.head, $('bridge').textContent);
  await put('script', page.body, await part('/app.js'), 'module');
  return address(`<!DOCTYPE html>${page.documentElement.outerHTML}`, 'text/html;charset=utf-8');
}

addEventListener('message', async ({ data, source }) => {
  if (source !== $('explorer')?.contentWindow) return;
  if (data.report !== undefined) {
    show('report');
    return $('report').contentWindow.postMessage({ goTo: data.report }, '*');
  }
  try {
    source.postMessage({ n: data.n, ...(await explore(data.method, data.path, data.body)) }, '*');
  } catch (e) {
    source.postMessage({ n: data.n, status: 500, text: JSON.stringify({ error: { message: e.message } }) }, '*');
  }
});
