// What the generated classes lack: `free` may be called twice, what was freed says so, and what is
// at work is left alone. The module would free under its own hands what a getter of its input frees.

/** Where an object of the module is in its memory; 0 once it was freed. */
const PLACE = "__wbg_ptr";

const atWork = new WeakSet();

/** Guards the methods of a class. */
export function guard({ prototype }) {
  for (const name of Object.getOwnPropertyNames(prototype)) {
    if (name === "constructor" || name.startsWith("__")) continue;
    prototype[name] = (name === "free" ? once : alone)(prototype[name]);
  }
  if (Symbol.dispose) prototype[Symbol.dispose] = prototype.free;
}

function checkIdle(object) {
  if (atWork.has(object)) throw new Error("it is at work: what it was given may not call it");
}

const alone = (method) =>
  function (...args) {
    if (!this[PLACE]) throw new Error("it was freed");
    checkIdle(this);
    atWork.add(this);
    try {
      return method.apply(this, args);
    } finally {
      atWork.delete(this);
    }
  };

const once = (free) =>
  function () {
    checkIdle(this);
    if (this[PLACE]) free.call(this);
  };
