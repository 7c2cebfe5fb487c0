// The page of `dvim explore`: shows what the server computes, and computes no statistic of its own.

const $ = (selector, from = document) => from.querySelector(selector);
const main = $('#main');
// A frame that may not change its address is lent a place that stands in for it.
const { location, history } = globalThis.lentPlace ?? globalThis;
let run = null;

// ---------------------------------------------------------------- making elements

/** An element: h('a', { href: '#/' }, 'words', other). Functions are listeners, `style` is an object. */
function h(tag, attributes = {}, ...children) {
  const svg = ['svg', 'line', 'circle', 'rect', 'text', 'g'].includes(tag);
  const out = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') out.addEventListener(name, value);
    else if (name === 'style') for (const [k, v] of Object.entries(value)) out.style.setProperty(k, v);
    else out.setAttribute(name, value === true ? '' : value);
  }
  out.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return out;
}

/** Puts these in the place of what an element holds; leaves out what is false. */
function put(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
}

/** A figure that the server drew. */
function figure(svg) {
  const parsed = new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement;
  return h('div', { class: 'figure', tabindex: '0', role: 'group', 'aria-label': $('title', parsed)?.textContent ?? 'Figure' }, document.importNode(parsed, true));
}

// ---------------------------------------------------------------- numbers in words

const MINUS = '−';
const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ',');

/** About four significant digits. */
function short(x) {
  const size = Math.abs(x);
  if (size === 0) return '0';
  if (size < 1e-4 || size >= 1e7) return x.toExponential(3).replace('-', MINUS);
  const decimals = Math.min(6, Math.max(0, 3 - Math.floor(Math.log10(size))));
  const text = x.toFixed(decimals);
  return (text.includes('.') ? text.replace(/\.?0+$/, '') : text).replace('-', MINUS);
}
const signed = (x) => (x > 0 ? '+' : '') + short(x);
const points = (x) => (x > 0 ? '+' : '') + (100 * x).toFixed(1).replace('-', MINUS);
const percent = (x) => (100 * x).toFixed(1);
/** Times have the decimals that their unit deserves. */
const fixed = (x) => x.toFixed([2000, 20, 2].filter((h) => run.horizon < h).length).replace('-', MINUS);
const signedFixed = (x) => (x > 0 ? '+' : '') + fixed(x);

/** A number on the page: rounded for the eye, exact in `data-value` and on hover. */
function shown(name, value, format, className) {
  if (value === null || value === undefined) return h('span', { class: className, 'data-name': name, 'data-value': '' }, 'undefined');
  return h('span', { class: className, 'data-name': name, 'data-value': String(value), title: String(value) }, format(value));
}

function ends(name, low, high, format) {
  if (low === null || low === undefined) return h('span', { class: 'muted' }, 'no interval');
  return h('span', { class: 'muted' }, '(', shown(name + '_low', low, format), ' to ', shown(name + '_high', high, format), ')');
}

/** The value of a covariate. */
const typed = (value, j) => (run.covariates[j].kind === 'number' ? value.replace(/^-/, MINUS) : value);

function outcomeWords(outcome, time) {
  return { event: 'event at ', censored: 'censored at ', 'event-free': 'event-free at ', 'other cause': 'event of another cause at ' }[outcome] + short(time);
}

/** What an interval says of its effect. */
function intervalWords(low, high) {
  if (low === null || low === undefined) return '';
  const level = ` The interval of ${short(100 * run.confidence)}\u00a0%`;
  return low <= 0 && high >= 0 ? `${level} includes zero.` : `${level} does not include zero.`;
}

/** An interval as a small picture, with zero in it. */
function intervalPicture(value, low, high) {
  if (value === null || value === undefined) return null;
  const has = low !== null && low !== undefined;
  const [a, b] = [Math.min(0, value, has ? low : value), Math.max(0, value, has ? high : value)];
  const x = (v) => `${5 + (90 * (v - a)) / (b - a || 1)}%`;
  return h('svg', { class: 'interval', 'aria-hidden': 'true' },
    h('line', { class: 'axis', x1: '2%', x2: '98%', y1: 14, y2: 14 }),
    h('line', { class: 'zero', x1: x(0), x2: x(0), y1: 2, y2: 26 }),
    h('text', { x: x(0), y: 40, 'text-anchor': 'middle' }, '0'),
    has && h('line', { class: 'ci', x1: x(low), x2: x(high), y1: 14, y2: 14 }),
    h('circle', { cx: x(value), cy: 14, r: 6 }));
}

// ---------------------------------------------------------------- asking the server

class Refused extends Error {}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (e) {
    if (e.name === 'AbortError') throw e;
    throw new Refused('The program does not answer. If it has ended, start “dvim explore” again and use its new address.');
  }
  const body = await response.json().catch(() => null);
  if (response.ok && body) return body;
  throw new Refused(body?.error?.message ?? `The program answered ${response.status}.`);
}

const query = (values) => new URLSearchParams(Object.entries(values).filter(([, v]) => v !== null && v !== undefined && v !== '')).toString();

function complain(error) {
  if (error?.name === 'AbortError') return;
  $('#alert').textContent = error ? error.message : '';
  if (error && !(error instanceof Refused)) throw error;
}

let saying;
function say(words) {
  clearTimeout(saying);
  saying = setTimeout(() => { $('#live').textContent = words; }, 350);
}

// ---------------------------------------------------------------- which page

let leave = () => {};

function address() {
  const [path, search] = location.hash.replace(/^#\/?/, '').split('?');
  return { path: path.split('/').map(decodeURIComponent), search: new URLSearchParams(search ?? '') };
}

async function show({ keepFocus = false } = {}) {
  leave();
  leave = () => {};
  complain(null);
  const { path, search } = address();
  const pages = { '': overview, patients, patient, new: newPatient };
  const page = pages[path[0]] ?? missing;
  document.querySelectorAll('nav a').forEach((a) => {
    const current = a.dataset.page === (path[0] === '' ? 'overview' : path[0] === 'patient' ? 'patients' : path[0]);
    current ? a.setAttribute('aria-current', 'page') : a.removeAttribute('aria-current');
  });
  main.classList.add('busy');
  try {
    await page(path.slice(1), search);
    if (!keepFocus) {
      main.focus({ preventScroll: true });
      window.scrollTo(0, 0);
    }
  } catch (e) {
    put(main, h('h1', {}, 'This cannot be shown'), h('p', {}, h('a', { href: '#/patients' }, 'All patients')));
    complain(e);
  } finally {
    main.classList.remove('busy');
  }
}

function title(words) {
  document.title = `${words} · ${run.file} · dvim`;
}

function missing() {
  title('Not found');
  put(main, h('h1', {}, 'There is no such page'), h('p', {}, h('a', { href: '#/' }, 'Overview')));
}

// ---------------------------------------------------------------- overview

const average = (estimand, population = 'all') => run.averages.find((a) => a.estimand === estimand && a.population === population);

function averageCard(name, className, estimand, format, unit, more, fewer) {
  const a = average(estimand);
  const arms = [['treated', run.labels.treated], ['control', run.labels.control]];
  return h('section', { class: `card ${className}` },
    h('h2', {}, name),
    h('p', { class: 'effect' }, shown(estimand, a?.estimate, format, 'value'), h('span', { class: 'unit' }, unit),
      a?.low !== null && a?.low !== undefined ? h('span', {}, ends(estimand, a.low, a.high, format)) : h('span', { class: 'muted' }, '(no interval)')),
    intervalPicture(a?.estimate, a?.low, a?.high),
    h('p', { class: 'small muted' }, a?.estimate === null || a?.estimate === undefined ? 'No patient’s effect is defined.' : a.estimate >= 0 ? more : fewer,
      intervalWords(a?.low, a?.high)),
    h('table', { class: 'plain' }, h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Average over'), h('th', { scope: 'col', class: 'num' }, 'Effect'))),
      h('tbody', {}, arms.map(([population, label]) => {
        const b = average(estimand, population);
        return h('tr', {}, h('th', { scope: 'row' }, h('span', { class: `dot ${population}` }), label), h('td', { class: 'num' }, shown(`${estimand}_${population}`, b?.estimate, format), ' ', ends(`${estimand}_${population}`, b?.low, b?.high, format)));
      }))));
}

const REPORT = [['who', 'patients'], ['balance', 'balance and overlap'], ['follow-up', 'follow-up'], ['sensitivity', 'sensitivity'], ['models', 'models'], ['methods', 'methods']];

async function overview() {
  title('Overview');
  const [t, c] = [run.counts.treated, run.counts.control];
  const arms = [[run.labels.treated, t, 'treated'], [run.labels.control, c, 'control']];
  const others = t.n_competing !== undefined;
  const largest = (key) => Math.max(1e-300, ...run.covariates.map((v) => v[key]));
  const most = { cure_weight: largest('cure_weight'), time_weight: largest('time_weight') };
  const ranked = [...run.covariates].sort((a, b) => b.cure_weight / most.cure_weight + b.time_weight / most.time_weight - a.cure_weight / most.cure_weight - a.time_weight / most.time_weight);
  const verdicts = run.follow_up.filter(([population]) => population !== 'all');
  const bar = (value, of, className) => h('td', {}, h('span', { class: `weightbar ${className}`, style: { width: `${((5 * value) / of).toFixed(3)}rem` } }), ' ', h('span', { class: 'small muted' }, value > 0 && of < 1e-3 ? value.toExponential(1).replace('-', MINUS) : value.toFixed(3)));
  put(main,
    h('h1', {}, run.question),
    run.synthetic && h('p', { class: 'flags' }, run.synthetic),
    h('p', { class: 'lead' }, run.sentence),
    h('p', { class: 'muted' }, `${grouped(run.n_units)} patients; horizon ${short(run.horizon)}${run.time_unit ? ' ' + run.time_unit : ''}. ${run.how}`),
    h('div', { class: 'two' },
      averageCard('Cure effect', 'cure', 'cure_effect', points, 'percentage points', `More patients are ${run.state} with ${run.labels.treated}.`, `Fewer patients are ${run.state} with ${run.labels.treated}.`),
      averageCard('Time effect', 'timing', 'time_effect', signedFixed, run.time_words, `Among those with an event before the horizon, it comes later with ${run.labels.treated}.`, `Among those with an event before the horizon, it comes earlier with ${run.labels.treated}.`)),
    h('p', {}, h('a', { href: '#/patients' }, 'Look at the patients behind these numbers'), ' or ', h('a', { href: '#/new' }, 'enter a new patient'), '.'),
    h('h2', {}, 'Can it be relied on?'),
    !run.audited && h('p', { class: 'verdict warn' }, 'The run was made without an audit: ', h('code', {}, 'dvim audit'), ' says whether follow-up suffices and how sure the averages are.'),
    run.verdict
      ? [['cure_effect', 'time_effect'].map((name, i) => h('p', { class: `verdict ${run.verdict[name].support === 'supported' ? '' : 'warn'}`, 'data-verdict': run.verdict[name].support }, run.verdict_lines[0][i])),
        run.verdict.reasons.length > 0 && h('ul', { id: 'reasons' }, run.verdict_lines[1].map((words) => h('li', {}, words)))]
      : verdicts.map(([population, verdict, words]) => h('p', { class: `verdict ${verdict === 'sufficient' ? '' : 'warn'}`, 'data-arm': population }, capital(words))),
    run.worries.length ? [h('p', {}, 'What to keep in mind:'), h('ul', {}, run.worries.map((w) => h('li', {}, w)))] : h('p', {}, 'No patient’s estimate is flagged and every model converged.'),
    h('p', {}, 'In ', h('a', { href: '/report', target: '_blank' }, 'the report'), ': ', REPORT.map(([id, words], i) => [i > 0 && ' · ', h('a', { href: `/report#${id}`, target: '_blank' }, words)])),
    h('div', { class: 'two' },
      h('section', {}, h('h2', {}, 'Who was compared'),
        h('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Patients by arm' }, h('table', { class: 'counts' },
          h('thead', {}, h('tr', {}, ['Arm', 'Patients', 'Estimated', 'Events', ...(others ? ['Other causes'] : []), 'Censored', 'Event-free at H'].map((n, i) => h('th', { scope: 'col', class: i ? 'num' : '' }, n)))),
          h('tbody', {}, arms.map(([label, n, arm]) => h('tr', {}, h('th', { scope: 'row' }, h('span', { class: `dot ${arm}` }), label),
            [n.n_units, n.n_estimation, n.n_events, ...(others ? [n.n_competing] : []), n.n_censored, n.n_at_risk].map((v) => h('td', { class: 'num' }, grouped(v))))))))),
      h('section', {}, h('h2', {}, 'What decides who is compared with whom'),
        h('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Weights of the metrics' }, h('table', { class: 'weights' },
          h('thead', {}, h('tr', {}, ['Covariate', 'Weight for cure', 'Weight for time'].map((n) => h('th', { scope: 'col' }, n)))),
          h('tbody', {}, ranked.slice(0, 12).map((v) => h('tr', {}, h('th', { scope: 'row' }, v.label), bar(v.cure_weight, most.cure_weight, ''), bar(v.time_weight, most.time_weight, 'timing')))))),
        ranked.length > 12 && h('p', { class: 'note' }, `${ranked.length - 12} more weigh less; weights.csv has all.`))));
}

// ---------------------------------------------------------------- patients: table and plane

// Where the plane lies below the table, a shorter table leaves it in reach.
const PAGE = matchMedia('(min-width: 68rem)').matches ? 50 : 20;

async function patients(_, search) {
  title('Patients');
  const state = { q: search.get('q') ?? '', show: search.get('show') ?? 'estimated', sort: search.get('sort') ?? 'id', desc: search.get('desc') === '1', page: Math.max(1, parseInt(search.get('page') ?? '1', 10) || 1) };
  const go = (change, replace = false) => {
    const next = { ...state, page: 1, ...change };
    const text = query({ q: next.q, show: next.show === 'estimated' ? '' : next.show, sort: next.sort === 'id' ? '' : next.sort, desc: next.desc ? '1' : '', page: next.page > 1 ? next.page : '' });
    const hash = '#/patients' + (text ? '?' + text : '');
    if (hash === location.hash) return;
    if (replace) history.replaceState(null, '', hash);
    else history.pushState(null, '', hash);
    Object.assign(state, next);
    refresh();
  };

  const search_box = h('input', { id: 'q', type: 'search', value: state.q, autocomplete: 'off', spellcheck: 'false', 'aria-describedby': 'q-help',
    input: () => { clearTimeout(search_box.timer); search_box.timer = setTimeout(() => go({ q: search_box.value }, true), 180); } });
  const kinds = [['estimated', 'Estimated'], ['flagged', 'With a flag'], ['all', 'All'], ...(run.n_trained ? [['trained', 'Trained the models']] : [])];
  const kind = h('select', { id: 'show', change: () => go({ show: kind.value }) }, kinds.map(([value, words]) => h('option', { value, selected: value === state.show }, words)));
  const body = h('tbody', { keydown: walkRows });
  const columns = [['id', 'Patient', ''], ['treatment', 'Arm', ''], ['time', 'Outcome', ''], ['cure_effect', 'Cure effect, points', 'num'], ['time_effect', 'Time effect', 'num'], ['flags', 'Flags', '']];
  const heads = [...columns, ...run.covariates.map((c) => [c.label, c.label, c.kind === 'number' ? 'num' : ''])].map(([name, words, className]) => {
    const th = h('th', { scope: 'col', class: className }, h('button', { type: 'button', click: () => go({ sort: name, desc: state.sort === name ? !state.desc : ['cure_effect', 'time_effect', 'flags'].includes(name) }) }, words));
    th.dataset.sort = name;
    return th;
  });
  const count = h('p', { id: 'count', class: 'muted' });
  const before = h('button', { type: 'button', click: () => go({ page: state.page - 1 }) }, 'Previous');
  const after = h('button', { type: 'button', click: () => go({ page: state.page + 1 }) }, 'Next');
  const where = h('span', { class: 'muted' });
  const table = h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Patients' },
    h('table', { class: 'tight' }, h('caption', { class: 'hidden' }, 'Patients with their effects and covariates; the buttons in the head sort.'), h('thead', {}, h('tr', {}, heads)), body));
  const map = plane({ pick: (id) => { location.hash = `#/patient/${encodeURIComponent(id)}`; } });
  put(main,
    h('h1', {}, 'Patients'),
    h('div', { class: 'tools' },
      h('div', { class: 'grow' }, h('label', { for: 'q' }, 'Search'), search_box),
      h('div', {}, h('label', { for: 'show' }, 'Show'), kind)),
    h('p', { class: 'note', id: 'q-help' }, 'Part of an id, or conditions: ', h('code', {}, exampleQuery()), '. Names with spaces go in quotes.'),
    h('div', { class: 'browse' }, h('section', { 'aria-label': 'Table' }, count, table, h('div', { class: 'pages' }, before, after, where)), map.element));

  let latest = 0;
  async function refresh() {
    const mine = ++latest;
    if (document.activeElement !== search_box) search_box.value = state.q;
    kind.value = state.show;
    heads.forEach((th) => th.dataset.sort === state.sort ? th.setAttribute('aria-sort', state.desc ? 'descending' : 'ascending') : th.removeAttribute('aria-sort'));
    const filter = { q: state.q, show: state.show };
    try {
      const [found, points] = await Promise.all([
        ask('/api/patients?' + query({ ...filter, sort: state.sort, desc: state.desc ? '1' : '0', offset: (state.page - 1) * PAGE, limit: PAGE })),
        ask('/api/plane?' + query(filter)),
      ]);
      if (mine !== latest) return;
      complain(null);
      put(body, found.rows.map(tableRow));
      const pages = Math.max(1, Math.ceil(found.n / PAGE));
      const from = found.rows.length ? (state.page - 1) * PAGE + 1 : 0;
      count.textContent = `${grouped(found.n)} ${found.n === 1 ? 'patient' : 'patients'}` + (state.q ? (found.n === 1 ? ' matches' : ' match') : '');
      where.textContent = found.rows.length ? `${grouped(from)} to ${grouped(from + found.rows.length - 1)} of ${grouped(found.n)}` : 'Nobody matches.';
      [before.disabled, after.disabled] = [state.page <= 1, state.page >= pages];
      map.set(points);
      say(`${count.textContent}. ${where.textContent}`);
    } catch (e) {
      if (mine === latest) complain(e);
    }
  }
  leave = () => { clearTimeout(search_box.timer); latest = -1; map.end(); };
  await refresh();
}

let plane_of_all = null;
/** The points of the plane of all estimated patients: asked for once. */
const everybody = () => (plane_of_all ??= ask('/api/plane').catch((e) => { plane_of_all = null; throw e; }));

function exampleQuery() {
  const number = run.covariates.find((c) => c.range);
  const level = run.covariates.find((c) => c.levels.length);
  const quote = (s) => (/\s/.test(s) ? `"${s}"` : s);
  return [number && `${quote(number.label)}>${short(number.range[1]).replace(MINUS, '-')}`, level && `${quote(level.label)}=${quote(level.levels[0])}`, 'cure_effect>0.1'].filter(Boolean).join(' ');
}

function tableRow(row) {
  const href = `#/patient/${encodeURIComponent(row.id)}`;
  const effect = (name, [value, low, high], format) => h('td', { class: 'num' },
    value === null ? h('span', { class: 'muted' }, row.trained ? '' : 'undefined') : [shown(name, value, format), h('span', { class: 'ends' }, low === null ? '' : `${format(low)} to ${format(high)}`)]);
  return h('tr', { class: 'pick', click: (e) => { if (!e.target.closest('a')) location.hash = href; } },
    h('th', { scope: 'row' }, h('a', { href }, row.id)),
    h('td', {}, h('span', { class: `dot ${row.arm}` }), row.treatment),
    h('td', { class: 'nobr' }, outcomeWords(row.outcome, row.time)),
    effect('cure_effect', row.cure, points), effect('time_effect', row.time_effect, signedFixed),
    h('td', {}, row.trained ? h('span', { class: 'tag' }, 'trained') : row.flags.length ? h('span', { class: 'tag', title: row.flags.join(', ') }, `${row.flags.length} ${row.flags.length === 1 ? 'flag' : 'flags'}`) : ''),
    row.values.map((v, j) => h('td', { class: run.covariates[j].kind === 'number' ? 'num' : '' }, typed(v, j))));
}

/** Up and down go from row to row. */
function walkRows(e) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
  if (!step || !e.target.matches('a')) return;
  const rows = [...e.currentTarget.querySelectorAll('tr th a')];
  const next = rows[rows.indexOf(e.target) + step];
  if (next) {
    e.preventDefault();
    next.focus();
  }
}

/** The plane of cure benefit against time benefit, as a map. */
function plane({ pick, heading = 'Both effects of each patient' }) {
  const canvas = h('canvas', { tabindex: '0', role: 'application', 'aria-label': 'Plane of cure effect against time effect. Arrow keys go from patient to patient, Enter opens the patient.', 'aria-describedby': 'map-note' });
  const tip = h('div', { class: 'tip', hidden: true });
  const note = h('p', { class: 'note', id: 'map-note' });
  const element = h('section', { class: 'map card', 'aria-label': 'Plane of both effects' },
    h('h2', {}, heading),
    h('p', { class: 'small muted' }, `To the right: more are event-free with ${run.labels.treated}. Upwards: events come later. A click opens the patient.`),
    h('div', { class: 'wrap' }, canvas, tip),
    h('p', { class: 'small' }, h('span', { class: 'dot treated' }), run.labels.treated, '\u2003', h('span', { class: 'dot control' }), run.labels.control), note);
  let data = [];
  let at = -1;
  let marked = null;
  let frame = null;

  const limits = (values) => {
    let [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
    if (low === high) [low, high] = [-1, 1];
    const pad = 0.06 * (high - low);
    return [low - pad, high + pad];
  };
  const ticks = ([low, high], most) => {
    const raw = (high - low) / most;
    const unit = 10 ** Math.floor(Math.log10(raw));
    const step = unit * [1, 2, 5, 10].find((s) => s * unit >= raw);
    const out = [];
    for (let i = Math.ceil(low / step); i * step <= high; i++) out.push(i * step);
    return out;
  };
  // Spreading five thousand values into Math.min is at the edge of what engines take.
  const extent = (values) => limits(values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]).filter(Number.isFinite));

  function draw() {
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width) return;
    const scale = window.devicePixelRatio || 1;
    [canvas.width, canvas.height] = [width * scale, height * scale];
    const c = canvas.getContext('2d');
    c.scale(scale, scale);
    const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue('--dv-' + name).trim();
    const also = (i) => (marked ? marked[i].filter(Number.isFinite) : []);
    const [xs, ys] = [extent([...data.map((p) => 100 * p[1]), ...also(0).map((v) => 100 * v)]), extent([...data.map((p) => p[2]), ...also(1)])];
    const inner = { left: 52, right: width - 10, top: 10, bottom: height - 40 };
    const x = (v) => inner.left + ((100 * v - xs[0]) / (xs[1] - xs[0])) * (inner.right - inner.left);
    const y = (v) => inner.bottom - ((v - ys[0]) / (ys[1] - ys[0])) * (inner.bottom - inner.top);
    frame = { x, y };
    c.font = '11px system-ui, sans-serif';
    c.lineWidth = 1;
    c.textAlign = 'center';
    for (const t of ticks(xs, width / 70)) {
      c.strokeStyle = ink('grid');
      line(c, x(t / 100), inner.top, x(t / 100), inner.bottom);
      c.fillStyle = ink('muted');
      c.fillText(signed(t), x(t / 100), inner.bottom + 15);
    }
    c.textAlign = 'right';
    for (const t of ticks(ys, 6)) {
      c.strokeStyle = ink('grid');
      line(c, inner.left, y(t), inner.right, y(t));
      c.fillStyle = ink('muted');
      c.fillText(signed(t), inner.left - 6, y(t) + 4);
    }
    c.strokeStyle = ink('ink');
    line(c, x(0), inner.top, x(0), inner.bottom);
    line(c, inner.left, y(0), inner.right, y(0));
    c.fillStyle = ink('ink');
    c.textAlign = 'center';
    c.fillText('Cure effect, percentage points', (inner.left + inner.right) / 2, height - 6);
    c.save();
    c.translate(11, (inner.top + inner.bottom) / 2);
    c.rotate(-Math.PI / 2);
    c.fillText('Time effect', 0, 0);
    c.restore();
    const r = data.length > 1500 ? 2 : data.length > 300 ? 2.6 : 3.6;
    c.globalAlpha = data.length > 1500 ? 0.45 : 0.65;
    for (const [, cure, time, treated] of data) {
      c.fillStyle = ink2(treated);
      if (treated) {
        c.beginPath();
        c.arc(x(cure), y(time), r, 0, 2 * Math.PI);
        c.fill();
      } else c.fillRect(x(cure) - r * 0.9, y(time) - r * 0.9, 1.8 * r, 1.8 * r);
    }
    c.globalAlpha = 1;
    const [cure, time] = [average('cure_effect')?.estimate, average('time_effect')?.estimate];
    if (Number.isFinite(cure) && Number.isFinite(time)) {
      c.strokeStyle = ink('paper');
      c.lineWidth = 5;
      cross(c, x(cure), y(time), 8);
      c.strokeStyle = ink('ink');
      c.lineWidth = 2;
      cross(c, x(cure), y(time), 8);
    }
    if (marked) {
      // The patient with the intervals of both effects.
      const [[cure, ...cureEnds], [time, ...timeEnds]] = marked;
      for (const [colour, width] of [['paper', 6], ['ink', 2.5]]) {
        c.strokeStyle = ink(colour);
        c.lineWidth = width;
        if (cureEnds.every(Number.isFinite)) line(c, x(cureEnds[0]), y(time), x(cureEnds[1]), y(time));
        if (timeEnds.every(Number.isFinite)) line(c, x(cure), y(timeEnds[0]), x(cure), y(timeEnds[1]));
      }
      c.fillStyle = ink('ink');
      c.strokeStyle = ink('paper');
      c.lineWidth = 2;
      c.beginPath();
      c.arc(x(cure), y(time), 7, 0, 2 * Math.PI);
      c.fill();
      c.stroke();
    }
    const focus = data[at] ?? null;
    if (focus) {
      c.lineWidth = 3;
      c.strokeStyle = ink('ink');
      c.beginPath();
      c.arc(x(focus[1]), y(focus[2]), 8, 0, 2 * Math.PI);
      c.stroke();
    }
    c.lineWidth = 1;
    function ink2(treated) { return treated ? (draw.t ??= ink('treated')) : (draw.c ??= ink('control')); }
    draw.t = draw.c = undefined;
  }
  function line(c, x1, y1, x2, y2) { c.beginPath(); c.moveTo(x1, y1); c.lineTo(x2, y2); c.stroke(); }
  function cross(c, x, y, r) { line(c, x - r, y, x + r, y); line(c, x, y - r, x, y + r); }

  const describe = (p) => `Patient ${p[0]}: cure ${points(p[1])} points, time ${signedFixed(p[2])}`;
  function focusOn(i, speak) {
    if (i === at) return;
    at = i;
    draw();
    tip.hidden = i < 0;
    if (i < 0) return;
    tip.textContent = describe(data[i]);
    const [px, py] = [frame.x(data[i][1]), frame.y(data[i][2])];
    tip.style.setProperty('left', `${Math.max(0, Math.min(px - tip.offsetWidth / 2, canvas.clientWidth - tip.offsetWidth))}px`);
    tip.style.setProperty('top', `${py > 50 ? py - 38 : py + 14}px`);
    if (speak) say(describe(data[i]));
  }
  function nearest(e, reach) {
    const box = canvas.getBoundingClientRect();
    const [mx, my] = [e.clientX - box.left, e.clientY - box.top];
    let [best, least] = [-1, reach * reach];
    data.forEach((p, i) => {
      const d = (frame.x(p[1]) - mx) ** 2 + (frame.y(p[2]) - my) ** 2;
      if (d < least) [best, least] = [i, d];
    });
    return best;
  }
  canvas.addEventListener('pointermove', (e) => { if (frame) focusOn(nearest(e, 24), false); });
  canvas.addEventListener('pointerleave', () => focusOn(-1, false));
  canvas.addEventListener('click', (e) => {
    const i = nearest(e, 30);
    if (i >= 0) pick(data[i][0]);
  });
  canvas.addEventListener('keydown', (e) => {
    const direction = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[e.key];
    if (e.key === 'Enter' && at >= 0) return pick(data[at][0]);
    if (!direction || !data.length || !frame) return;
    e.preventDefault();
    if (at < 0) return focusOn(Math.floor(data.length / 2), true);
    const [ox, oy] = [frame.x(data[at][1]), frame.y(data[at][2])];
    let [best, least] = [-1, Infinity];
    data.forEach((p, i) => {
      const [dx, dy] = [frame.x(p[1]) - ox, frame.y(p[2]) - oy];
      const along = dx * direction[0] + dy * direction[1];
      const aside = Math.abs(dx * direction[1]) + Math.abs(dy * direction[0]);
      if (i !== at && along > 0.01 && along + 2 * aside < least) [best, least] = [i, along + 2 * aside];
    });
    if (best >= 0) focusOn(best, true);
  });
  canvas.addEventListener('blur', () => focusOn(-1, false));
  const watch = new ResizeObserver(draw);
  watch.observe(canvas);
  const redraw = () => draw();
  document.addEventListener('themechange', redraw);
  return {
    element,
    set(found, more = '') {
      data = found.points;
      at = -1;
      tip.hidden = true;
      const average_note = 'The cross is the average over all.';
      const drawn = data.length < found.n ? `${grouped(data.length)} of ${grouped(found.n)} patients are drawn, evenly by id. ` : `${grouped(found.n)} patients. `;
      note.textContent = drawn + (found.n_undefined ? `${grouped(found.n_undefined)} more have no time effect and are not drawn. ` : '') + average_note + (more ? ' ' + more : '');
      draw();
    },
    /** Marks a patient: each effect with the ends of its interval; nobody where an effect is undefined. */
    mark(cure, time) {
      marked = Number.isFinite(cure[0]) && Number.isFinite(time[0]) ? [cure, time] : null;
      draw();
    },
    end() { watch.disconnect(); document.removeEventListener('themechange', redraw); },
  };
}

// ---------------------------------------------------------------- one patient

const GROUPS = [['cure-treated', 'Cure', 'treated'], ['cure-control', 'Cure', 'control'], ['time-treated', 'Time', 'treated'], ['time-control', 'Time', 'control']];

async function patient([id], search) {
  title(`Patient ${id}`);
  const path = `/api/patient/${encodeURIComponent(id)}`;
  const state = { k: search.get('k') || null, h: search.get('h') || null, group: search.get('group') || 'cure-treated' };
  const found = view({
    state,
    ask: (q, signal) => ask(`${path}?${query(q)}`, { signal }),
    remember: () => {
      const text = query({ k: state.k, h: state.h, group: state.group === 'cure-treated' ? '' : state.group });
      history.replaceState(null, '', `#/patient/${encodeURIComponent(id)}` + (text ? '?' + text : ''));
    },
  });
  const first = await found.ready;
  const label = run.labels[first.arm];
  const who = `${label.toLowerCase() === first.arm ? `${label} arm` : `${label} (${first.arm} arm)`}, ${outcomeWords(first.outcome, first.time)}${run.time_unit ? ' ' + run.time_unit : ''}.`;
  put(main,
    h('div', { class: 'who' },
      h('div', {}, h('h1', { id: 'who' }, `Patient ${first.id}`), h('p', {}, h('span', { class: `dot ${first.arm}` }), who)),
      h('p', {}, h('a', { href: '#/patients' }, 'All patients'), [' · ', h('a', { href: `#/new/from/${encodeURIComponent(id)}` }, 'What if this patient were different?')])),
    facts(first), found.element);
  leave = found.end;
}

function facts(answer) {
  return h('ul', { class: 'facts', 'aria-label': 'Covariates' }, answer.covariates.map((c, j) => h('li', {}, h('b', {}, c.name), typed(c.value, j))));
}

/** Both effects of a patient with sliders, curves and groups; `ask` brings the numbers. */
function view({ state, ask: bring, remember }) {
  const effects = h('div', { class: 'two' });
  const notes = h('div', { id: 'notes' });
  const members = h('section', { 'aria-label': 'Patients in the group' });
  const map = plane({ pick: (id) => { location.hash = `#/patient/${encodeURIComponent(id)}`; }, heading: 'Among all patients' });
  map.element.classList.add('among');
  const [lowK, highK] = run.group_sizes;
  const H = run.horizon;
  let [own, latest, aborter, answered] = [null, 0, null, false];

  // Sliders: the last place of the horizon is the run's own, exactly.
  const STEPS = 200;
  const kSlide = h('input', { type: 'range', id: 'k', min: lowK, max: highK, step: 1, 'aria-describedby': 'k-own', input: () => set({ k: kSlide.value }) });
  const kBox = h('input', { type: 'number', id: 'k-box', min: lowK, max: highK, step: 1, 'aria-label': 'Group size, as a number', change: () => set({ k: kBox.value }) });
  const hSlide = h('input', { type: 'range', id: 'h', min: 1, max: STEPS, step: 1, 'aria-describedby': 'h-own', input: () => set({ h: Number(hSlide.value) === STEPS ? null : String((H * hSlide.value) / STEPS) }) });
  const hBox = h('input', { type: 'number', id: 'h-box', min: 0, max: H, step: 'any', 'aria-label': 'Horizon, as a number', change: () => set({ h: Number(hBox.value) === H ? null : hBox.value }) });
  const kOwn = h('span', { id: 'k-own', class: 'small muted' });
  const reset = h('button', { type: 'button', id: 'reset', click: () => set({ k: null, h: null }) }, 'Back to the run’s own');
  const sliders = h('section', { class: 'sliders', 'aria-label': 'Group size and horizon' },
    h('div', { class: 'slider' }, h('div', { class: 'top' }, h('label', { for: 'k' }, 'Group size K'), kBox), kSlide, kOwn),
    h('div', { class: 'slider' }, h('div', { class: 'top' }, h('label', { for: 'h' }, 'Horizon H'), hBox), hSlide, h('span', { id: 'h-own', class: 'small muted' }, `up to the run’s own, ${short(H)}`)),
    h('div', {}, reset));
  const element = h('div', {}, sliders, notes, effects, members, map.element);
  everybody().then((points) => map.set(points, 'The large point with its lines is this patient with both intervals, at this group size and horizon.')).catch(complain);

  function set(change) {
    Object.assign(state, change);
    if (own && state.k !== null && own[0] === own[1] && Number(state.k) === own[0]) state.k = null;
    remember();
    refresh();
  }

  async function refresh(quiet = false) {
    const mine = ++latest;
    aborter?.abort();
    aborter = new AbortController();
    element.setAttribute('aria-busy', 'true');
    const width = Math.max(280, Math.min(1200, Math.floor(effects.clientWidth > 860 ? effects.clientWidth / 2 - 46 : (effects.clientWidth || main.clientWidth) - 30)));
    try {
      const answer = await bring({ k: state.k, h: state.h, w: width, group: state.group }, aborter.signal);
      if (mine !== latest) return answer;
      complain(null);
      fill(answer);
      if (answered && !quiet) say(`Group size ${[...new Set(answer.group_sizes)].join(' and ')}. ${answer.sentence}`);
      answered = true;
      return answer;
    } catch (e) {
      if (mine === latest && answered) complain(e);
      if (!answered) throw e;
    } finally {
      if (mine === latest) element.removeAttribute('aria-busy');
    }
  }

  function fill(answer) {
    own = answer.own_group_sizes;
    const differ = own[0] !== own[1];
    kSlide.value = kBox.value = answer.group_sizes[0];
    hSlide.value = Math.max(1, Math.round((STEPS * answer.horizon) / H));
    hBox.value = answer.horizon;
    kSlide.setAttribute('aria-valuetext', `${answer.group_sizes[0]} patients of each arm`);
    hSlide.setAttribute('aria-valuetext', short(answer.horizon));
    kOwn.textContent = `${lowK} to ${highK}; the run’s own: ${differ ? `${own[0]} for cure, ${own[1]} for time` : own[0]}`;
    reset.disabled = answer.as_run;
    put(notes,
      answer.notes.map((n) => h('p', { class: 'note' }, n)),
      answer.unserved && h('p', { class: 'flags', id: 'unserved' }, answer.unserved),
      answer.flags.map((f) => h('p', { class: 'flags' }, capital(f.meaning), '.')));
    put(effects, effectCard(answer, false), effectCard(answer, true));
    map.mark(...['cure_effect', 'time_effect'].map((name) => ['', '_low', '_high'].map((end) => answer.effect[name + end] ?? NaN)));
    if (answer.members) put(members, memberTable(answer, state, (group) => { state.group = group; remember(); refresh(true); }));
  }

  const resized = () => { clearTimeout(resized.timer); resized.timer = setTimeout(() => refresh(true), 200); };
  window.addEventListener('resize', resized);
  const ready = refresh().then((first) => { requestAnimationFrame(() => refresh(true)); return first; });
  return { element, ready, refresh, end: () => { window.removeEventListener('resize', resized); aborter?.abort(); latest = -1; map.end(); } };
}

const capital = (s) => s.charAt(0).toUpperCase() + s.slice(1);

function effectCard(answer, isTime) {
  const e = answer.effect;
  const name = isTime ? 'time_effect' : 'cure_effect';
  const format = isTime ? signedFixed : points;
  const of = (arm) => (isTime ? `mean_event_time_${arm}` : `cure_${arm}`);
  const plain = isTime ? fixed : percent;
  const groups = isTime ? answer.time_groups : answer.cure;
  const correction = answer.correction;
  const unserved = answer.unserved !== null;
  return h('section', { class: `card ${isTime ? 'timing' : 'cure'}`, id: isTime ? 'time-card' : 'cure-card', 'aria-label': isTime ? 'Time effect' : 'Cure effect' },
    h('h2', {}, isTime ? 'Time effect' : 'Cure effect'),
    h('p', { class: 'effect' }, shown(name, e[name], format, 'value'), h('span', { class: 'unit' }, isTime ? run.time_words : 'percentage points'), ends(name, e[`${name}_low`], e[`${name}_high`], format)),
    h('p', { class: 'small muted' }, effectWords(e[name], isTime, answer, unserved), intervalWords(e[`${name}_low`], e[`${name}_high`])),
    correction && h('p', { class: 'small', id: `${name}-correction` }, (isTime ? correction.time_words : correction.cure_words) ?? '', ' The groups alone give ', shown(`${name}_matched`, isTime ? correction.time_matched : correction.cure_matched, format), '; the correction moved it to ', shown(`${name}_corrected`, isTime ? correction.time_corrected : correction.cure_corrected, format), '.'),
    h('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Values of both arms' }, h('table', {},
      h('thead', {}, h('tr', {}, ['Arm', isTime ? 'Mean event time' : 'Event-free at H, %', 'Members', 'Events', 'At risk at H', 'Farthest'].map((n, i) => h('th', { scope: 'col', class: i ? 'num' : '' }, n)))),
      h('tbody', {}, ['treated', 'control'].map((arm) => h('tr', {},
        h('th', { scope: 'row' }, h('span', { class: `dot ${arm}` }), run.labels[arm]),
        h('td', { class: 'num' }, shown(of(arm), e[of(arm)], plain), ' ', e[of(arm)] === null ? '' : ends(of(arm), e[`${of(arm)}_low`], e[`${of(arm)}_high`], plain)),
        [groups[arm].n_members, groups[arm].n_events, groups[arm].n_at_risk].map((n) => h('td', { class: 'num' }, grouped(n))),
        h('td', { class: 'num' }, groups[arm].diameter === null ? '' : short(groups[arm].diameter))))))),
    answer.figures && figure(answer.figures[isTime ? 1 : 0]));
}

function effectWords(value, isTime, answer, unserved) {
  if (unserved) return 'There is no group, so there is no effect.';
  if (value === null || value === undefined) return 'Undefined: a group has no event before the horizon.';
  if (isTime) return value >= 0 ? `Among similar patients with an event, it comes later with ${run.labels.treated}.` : `Among similar patients with an event, it comes earlier with ${run.labels.treated}.`;
  return value >= 0 ? `Of similar patients, more are event-free at ${short(answer.horizon)} with ${run.labels.treated}.` : `Of similar patients, fewer are event-free at ${short(answer.horizon)} with ${run.labels.treated}.`;
}

const MOST_COLUMNS = 10;
let allColumns = false;

function memberTable(answer, state, choose) {
  const { members, matched_for, arm, label } = answer.members;
  const key = matched_for === 'time' ? 'time_weight' : 'cure_weight';
  const order = run.covariates.map((_, j) => j).sort((a, b) => run.covariates[b][key] - run.covariates[a][key] || a - b);
  const columns = allColumns ? order : order.slice(0, MOST_COLUMNS);
  const places = Math.round(members.reduce((s, m) => s + m.counts, 0)), isShared = members.some((m) => m.counts !== 1);
  const mean = run.covariates.map((_, j) => members.reduce((s, m) => s + m.counts * m.shares[j], 0) / Math.max(1, places));
  const top = [...order].sort((a, b) => mean[b] - mean[a]).slice(0, 5).filter((j) => mean[j] > 0);
  const tabs = h('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Group', keydown: (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!step) return;
    e.preventDefault();
    const i = GROUPS.findIndex(([name]) => name === state.group);
    choose(GROUPS[(i + step + GROUPS.length) % GROUPS.length][0]);
    tabs.dataset.moved = '1';
    memberTable.focus = true;
  } }, GROUPS.map(([name, what, z]) => h('button', { type: 'button', role: 'tab', id: `tab-${name}`, 'aria-controls': 'panel', 'aria-selected': String(name === state.group), tabindex: name === state.group ? '0' : '-1', click: () => { memberTable.focus = true; choose(name); } }, h('span', { class: 'long' }, 'Matched for '), `${what.toLowerCase()}: ${run.labels[z].toLowerCase() === z ? z : run.labels[z]}`)));
  if (memberTable.focus) requestAnimationFrame(() => $('[role=tab][aria-selected=true]')?.focus());
  memberTable.focus = false;
  const body = h('tbody', { keydown: walkRows },
    h('tr', { class: 'self' }, h('th', { scope: 'row' }, answer.id === null ? 'New patient' : `${answer.id}`), h('td', { class: 'num' }, '0'), isShared && h('td', {}, ''), h('td', {}, answer.id === null ? '' : outcomeWords(answer.outcome, answer.time)), columns.map((j) => h('td', {}, typed(answer.covariates[j].value, j)))),
    members.map((m) => h('tr', {},
      h('th', { scope: 'row' }, h('a', { href: `#/patient/${encodeURIComponent(m.id)}` }, m.id), m.id === answer.id && h('span', { class: 'tag' }, 'this patient')),
      h('td', { class: 'num' }, shown('distance', m.distance, short)), isShared && h('td', { class: 'num' }, short(m.counts)),
      h('td', { class: 'nobr' }, outcomeWords(m.outcome, m.time)),
      columns.map((j) => h('td', { class: 'share', style: { '--share': m.shares[j].toFixed(3) } }, typed(m.values[j], j), m.shares[j] >= 0.01 && h('i', {}, `${Math.round(100 * m.shares[j])} %`))))));
  return [
    h('h2', {}, 'The patients behind the numbers'), tabs,
    h('div', { role: 'tabpanel', id: 'panel', 'aria-labelledby': `tab-${state.group}` },
      h('p', {}, `The ${grouped(places)} most similar ${label.toLowerCase() === arm ? arm : label} patients under the metric for ${matched_for}, nearest first.${isShared ? ' Patients who are equally far share the last places.' : ''} The shade and the share say how much of the squared distance is due to each covariate.`),
      top.length > 0 && h('p', { class: 'small muted' }, 'What separates them from the patient, on average:'),
      top.length > 0 && h('div', { class: 'bars', role: 'img', 'aria-label': `Mean share in the distance: ${top.map((j) => `${run.covariates[j].label} ${Math.round(100 * mean[j])} %`).join(', ')}` },
        top.map((j) => [h('span', {}, run.covariates[j].label), h('span', { class: 'b', style: { width: `${100 * mean[j]}%` } }), h('span', { class: 'muted' }, `${Math.round(100 * mean[j])}\u00a0%`)])),
      members.length === 0 ? h('p', { class: 'flags' }, 'Nobody of this arm satisfies the constraints.') :
      h('div', { class: 'scroll members', tabindex: '0', role: 'region', 'aria-label': `Group matched for ${matched_for}, ${label}` }, h('table', { id: 'members' },
        h('caption', { class: 'hidden' }, `Members of the group matched for ${matched_for}, ${label}`),
        h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Patient'), h('th', { scope: 'col', class: 'num' }, 'Distance'), isShared && h('th', { scope: 'col', class: 'num' }, 'Counts'), h('th', { scope: 'col' }, 'Outcome'), columns.map((j) => h('th', { scope: 'col', title: `weight ${short(run.covariates[j][key])}` }, run.covariates[j].label)))), body)),
      order.length > MOST_COLUMNS && h('p', {}, h('button', { type: 'button', click: () => { allColumns = !allColumns; choose(state.group); } }, allColumns ? 'Show the covariates that weigh most' : `Show all ${order.length} covariates`)))];
}

// ---------------------------------------------------------------- a new patient

let entered = {};
let asked = false;

async function newPatient([from, id]) {
  title('New patient');
  if (from === 'from' && id !== undefined) {
    const other = await ask(`/api/patient/${encodeURIComponent(id)}`);
    entered = Object.fromEntries(other.covariates.filter((c) => c.exact !== null).map((c) => [c.name, c.exact]));
    asked = false;
  }
  const fields = run.covariates.filter((c) => c.kind !== 'missing');
  const inputs = new Map();
  const field = (c, i) => {
    const name = `field-${i}`;
    const optional = c.fill !== null;
    const common = { id: name, name: c.name, 'aria-describedby': `${name}-hint`, 'aria-required': optional ? 'false' : 'true' };
    const value = entered[c.name] ?? '';
    const hint = h('span', { id: `${name}-hint`, class: 'hint' });
    let input;
    if (c.kind === 'number') {
      input = h('input', { ...common, type: 'text', inputmode: 'decimal', autocomplete: 'off', value, input: () => check() });
      const check = () => {
        const v = Number(input.value.replace(',', '.'));
        const far = input.value.trim() !== '' && Number.isFinite(v) && (c.binary ? v !== 0 && v !== 1 : v < c.range[0] || v > c.range[2]);
        hint.classList.toggle('far', far);
        hint.textContent = (far ? 'Nobody in the cohort: ' : '') + (c.binary ? '0 or 1' : `${short(c.range[0])} to ${short(c.range[2])}, middle ${short(c.range[1])}`) + (optional ? '; may be empty' : '');
      };
      check();
    } else {
      input = h('select', common, h('option', { value: '' }, optional ? 'missing' : 'choose'), c.levels.map((l) => h('option', { value: l, selected: l === value }, l)));
      hint.textContent = optional ? 'may be missing' : '';
    }
    inputs.set(c.name, input);
    return h('div', {}, h('label', { for: name }, c.name), input, hint);
  };
  const result = h('div', { id: 'result' });
  let current = null;
  const values = () => Object.fromEntries([...inputs].map(([name, input]) => [name, input.tagName === 'INPUT' ? input.value.trim().replace(',', '.') : input.value]));
  const typical = () => {
    for (const c of fields) inputs.get(c.name).value = c.kind === 'number' ? short(c.range[1]).replace(MINUS, '-') : c.levels[0];
    inputs.forEach((input) => input.dispatchEvent(new Event('input')));
  };
  async function estimate(quiet) {
    complain(null);
    entered = values();
    current?.end();
    const state = { k: null, h: null, group: 'cure-treated' };
    current = view({
      state,
      ask: (q, signal) => ask('/api/new', { method: 'POST', signal, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ values: entered, ...q }) }),
      remember: () => {},
    });
    leave = current.end;
    try {
      const first = await current.ready;
      asked = true;
      put(result, h('h2', { id: 'result-title', tabindex: '-1' }, 'What similar patients say'), facts(first), current.element);
      if (!quiet) {
        $('#result-title').focus();
        say(first.sentence);
      }
    } catch (e) {
      put(result);
      asked = false;
      complain(e);
      $('#alert').scrollIntoView({ block: 'nearest' });
    }
  }
  const form = h('form', { novalidate: true, id: 'new-form', submit: (e) => { e.preventDefault(); estimate(false); } },
    h('div', { class: 'fields' }, fields.map(field)),
    h('div', { class: 'tools' },
      h('button', { type: 'submit', class: 'primary' }, 'Find similar patients'),
      h('button', { type: 'button', click: typical }, 'Fill in a typical patient'),
      h('button', { type: 'button', click: () => { inputs.forEach((input) => { input.value = ''; input.dispatchEvent(new Event('input')); }); put(result); entered = {}; asked = false; } }, 'Clear')));
  put(main,
    h('h1', {}, from === 'from' ? `A patient like ${id}` : 'New patient'),
    h('p', {}, 'Enter a patient who is not in the cohort. Both effects come from the most similar patients of each arm, as ', h('code', {}, 'dvim predict'), ' computes them. What you enter stays on this machine and is not stored.'),
    form, result);
  if (asked) await estimate(true);
}

// ---------------------------------------------------------------- colours, keys, start

const THEMES = [['auto', 'Auto', 'as the system'], ['light', 'Light', 'light'], ['dark', 'Dark', 'dark']];
function theme(name) {
  const [value, words, meaning] = THEMES.find(([n]) => n === name) ?? THEMES[0];
  if (value === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = value;
  const button = $('#theme');
  button.textContent = words;
  button.setAttribute('aria-label', `Colours: ${meaning}`);
  button.dataset.theme = value;
  document.dispatchEvent(new Event('themechange'));
}
$('#theme').addEventListener('click', () => {
  const next = THEMES[(THEMES.findIndex(([n]) => n === $('#theme').dataset.theme) + 1) % THEMES.length][0];
  try { localStorage.setItem('dvim-theme', next); } catch { /* a browser may forbid it */ }
  theme(next);
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => document.dispatchEvent(new Event('themechange')));
$('#skip').addEventListener('click', (e) => { e.preventDefault(); main.focus(); });
$('#jump').addEventListener('submit', (e) => {
  e.preventDefault();
  const id = $('#jump-id').value.trim();
  if (id) location.hash = `#/patient/${encodeURIComponent(id)}`;
});
document.addEventListener('keydown', (e) => {
  if (e.key === '/' && !e.ctrlKey && !e.metaKey && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName)) {
    e.preventDefault();
    ($('#q') ?? $('#jump-id')).focus();
  }
});

async function start() {
  let kept = null;
  try { kept = localStorage.getItem('dvim-theme'); } catch { /* as above */ }
  theme(kept ?? 'auto');
  // The token has done its work: it need not stay in the address, the history or a screenshot.
  if (location.search) history.replaceState(null, '', location.pathname + location.hash);
  try {
    run = await ask('/api/run');
    run.time_words = run.time_unit ?? `in the unit of “${run.time_column}”`;
  } catch (e) {
    return complain(e);
  }
  $('#footer').textContent = `dvim ${run.version} · ${run.estimator === 'adjusted' ? 'adjusted' : 'paper’s'} estimator · everything is computed on this machine, nothing leaves it`;
  window.addEventListener('hashchange', () => show());
  await show({ keepFocus: true });
}
start();
