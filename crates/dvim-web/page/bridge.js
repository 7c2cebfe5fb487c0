// In the frame of the explorer: what it would ask a server goes to the page, which asks the program.
{
  const waiting = new Map();
  let asked = 0;
  addEventListener('message', ({ data, source }) => {
    if (source !== parent || !waiting.has(data.n)) return;
    waiting.get(data.n)(data);
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
  addEventListener('click', (e) => {
    const href = e.target.closest?.('a')?.getAttribute('href') ?? '';
    if (!href.startsWith('/report')) return;
    e.preventDefault();
    parent.postMessage({ report: href.split('#')[1] ?? '' }, '*');
  }, true);
}
