// A browser runs no worker for a page that was opened from a disk, and the site's search is one. There, and only there, a hidden
// frame of the same page stands in for it: what is posted to one is an event of the other.
if (location.protocol === 'file:') {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.body.appendChild(document.createElement('iframe'));
      frame.hidden = true;
      this.inside = frame.contentWindow;
      this.waiting = [];
      this.inside.postMessage = (data) => this.hand(this, data);
      const script = this.inside.document.createElement('script');
      script.src = address;
      script.onload = () => {
        for (const data of this.waiting) this.hand(this.inside, data);
        this.waiting = null;
      };
      this.inside.document.body.append(script);
    }
    hand(to, data) {
      setTimeout(() => {
        const event = new MessageEvent('message', {data});
        to.dispatchEvent(event);
        if (to === this && this.onmessage) this.onmessage(event);
      });
    }
    postMessage(data) {
      if (this.waiting) this.waiting.push(data);
      else this.hand(this.inside, data);
    }
    terminate() {
      this.inside.frameElement.remove();
    }
  };
}
