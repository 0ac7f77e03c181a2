// What is expected, said without a package: browsers run it, too.

export function equal(found, expected, what = "") {
  const [a, b] = [found, expected].map((value) => JSON.stringify(value));
  if (a !== b) throw new Error(`${what}: found ${a}, expected ${b}`);
}

export function ok(value, what) {
  if (!value) throw new Error(what);
}

/** The error that an action ends with. */
export async function failure(action) {
  try {
    await action();
  } catch (error) {
    return error;
  }
  throw new Error(`nothing was thrown by ${action}`);
}

export async function refuses(action, pattern, type = Error) {
  const error = await failure(action);
  ok(error instanceof type, `${error?.name} is no ${type.name}: ${error?.message}`);
  ok(!(error instanceof WebAssembly.RuntimeError), `the module trapped: ${error.message}`);
  ok(pattern.test(error.message), `${error.message}: expected ${pattern}`);
}
