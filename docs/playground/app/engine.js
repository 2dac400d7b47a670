// A worker that answers questions about specs, and can be stopped at any time.

/** Work was ended by `stop`. */
export class Stopped extends Error {}

const START = 0; // what is waited for until the worker can answer

export class Engine {
  #worker = null;
  #waiting = new Map();
  #last = 0;
  #starting = null;

  /** Starts the worker if there is none; resolves when it can answer. */
  start() {
    if (this.#starting === null) {
      this.#worker = new Worker(new URL("worker.js", document.baseURI), { type: "module" });
      this.#starting = new Promise((resolve, reject) => {
        this.#waiting.set(START, { resolve, reject });
      });
      this.#worker.onmessage = ({ data }) => {
        if (data.ready === false) this.#end(new Error(data.fault));
        else this.#answered(data.ready ? { id: START } : data);
      };
      this.#worker.onerror = (event) => this.#end(new Error(event.message || "no worker starts"));
    }
    return this.#starting;
  }

  /**
   * Asks one question.
   * @param {string} ask its name.
   * @param {object} args its arguments.
   * @returns {Promise<any>} the answer; rejects with `Stopped`, or with a fault of the compiler.
   */
  async ask(ask, args) {
    await this.start();
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, question: { ask, ...args } });
    });
  }

  /** Ends the worker and what it is at; the next question starts another. */
  stop() {
    this.#end(new Stopped());
  }

  #end(why) {
    this.#worker?.terminate();
    this.#worker = this.#starting = null;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(why);
  }

  #answered({ id, value, fault }) {
    const { resolve, reject } = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (fault === undefined) resolve(value);
    else reject(new Error(fault));
  }
}
