// In the frames of the report and of the explorer. What the explorer would ask a server goes to the page, which asks the program.
// A page that was opened from disk gives its frames no address that they may change, not even the part after #. So links inside
// a frame are followed here, and the explorer is lent a place that stands in for its address.
{
  const waiting = new Map();
  let asked = 0;
  const goTo = (id) => {
    const to = document.getElementById(id);
    for (let e = to; e; e = e.parentElement) if (e.tagName === 'DETAILS') e.open = true;
    to?.scrollIntoView();
    return to !== null;
  };
  addEventListener('message', ({ data, source }) => {
    if (source !== parent) return;
    if (data.goTo !== undefined) return void goTo(data.goTo);
    waiting.get(data.n)?.(data);
    waiting.delete(data.n);
  });
  globalThis.fetch = async (path, { method = 'GET', body = '', signal } = {}) => {
    const n = ++asked;
    const { status, text } = await new Promise((done, failed) => {
      signal?.addEventListener('abort', () => failed(new DOMException('', 'AbortError')));
      waiting.set(n, done);
      parent.postMessage({ n, method, path, body }, '*');
    });
    return { ok: status === 200, status, json: async () => JSON.parse(text) };
  };
  let hash = '';
  const moved = () => dispatchEvent(new Event('hashchange'));
  const record = (how) => (_, __, to) => {
    hash = to.includes('#') ? to.slice(to.indexOf('#')) : '';
    history[how]({ hash }, '');
  };
  const own = { pushState: record('pushState'), replaceState: record('replaceState') };
  globalThis.lentPlace = {
    history: own,
    location: {
      search: '',
      pathname: '',
      get hash() { return hash; },
      set hash(to) {
        own.pushState(null, '', to);
        moved();
      },
    },
  };
  addEventListener('popstate', ({ state }) => {
    hash = state?.hash ?? '';
    moved();
  });
  addEventListener('click', (e) => {
    const href = e.target.closest?.('a')?.getAttribute('href') ?? '';
    if (href.startsWith('#/')) globalThis.lentPlace.location.hash = href;
    else if (href.startsWith('#')) goTo(href.slice(1));
    else if (href.startsWith('/report')) parent.postMessage({ report: href.split('#')[1] ?? '' }, '*');
    else return;
    e.preventDefault();
  }, true);
}
