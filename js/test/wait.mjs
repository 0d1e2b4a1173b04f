// Waiting in tests: for a condition or for a promise, never without an end.

/** What does not come about within this time never does. */
export const LIMIT_MS = Number(process.env.CROSSTALK_LIMIT ?? 60) * 1000;

const PAUSE_MS = 50;

/** The text of what is waited for, which may be a function that is asked at the end. */
const words = async (what) => (typeof what === "function" ? Promise.resolve(what()).catch(String) : what);

/** The value of a promise, or an error that says what did not come. */
export async function within(what, promise, limit = LIMIT_MS) {
  let timer;
  // Made here, so that it says who waited.
  const error = new Error();
  const late = new Promise((_, reject) => {
    timer = setTimeout(async () => {
      error.message = `waited ${limit / 1000} s in vain for ${await words(what)}`;
      reject(error);
    }, limit);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits until a condition holds, and returns its value. */
export async function until(what, condition, limit = LIMIT_MS) {
  let trouble = "";
  let isOver = false;
  const holds = async () => {
    while (!isOver) {
      const value = await Promise.resolve()
        .then(condition)
        .catch((error) => {
          trouble = `: ${error.message}`;
        });
      if (value) return value;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    return undefined;
  };
  try {
    return await within(async () => `${await words(what)}${trouble}`, holds(), limit);
  } finally {
    isOver = true;
  }
}

/** Ends a browser; one that does not end by itself is killed. */
export async function closeBrowser(browser) {
  if (browser === undefined) return;
  const child = browser.process();
  await within("the end of the browser", browser.close(), 15_000).catch((error) => {
    console.error(`${error.message}: it is killed`);
    child?.kill("SIGKILL");
  });
}
