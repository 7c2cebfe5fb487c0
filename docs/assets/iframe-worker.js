// Search runs in a worker, and a page that is opened as a file may start none. There a hidden frame takes its place.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.title = "Search";
      document.body.appendChild(this.frame);
      const inside = this.frame.contentDocument;
      inside.open();
      // Answers of the script go to whoever listens to this worker.
      inside.write("<!doctype html><html lang=en><title>Search</title><script>postMessage = data => frameElement.worker.answer(data)<\/script>");
      this.frame.worker = this;
      inside.write(`<script src="${address}"><\/script></html>`);
      inside.close();
      this.frame.addEventListener("load", () => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach(data => this.postMessage(data));
      });
    }
    answer(data) {
      setTimeout(() => this.dispatchEvent(new MessageEvent("message", { data })));
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else setTimeout(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
