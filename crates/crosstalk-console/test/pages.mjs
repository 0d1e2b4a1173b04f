// Every page, for the pictures, the checks of accessibility and the hostile texts. `path` may need what is in the relay.

/** The pages of somebody who is signed in: a name for the picture, who looks at it, and the path. */
export const PAGES = [
  { name: "inbox", who: "ann", path: () => "/inbox" },
  { name: "threads", who: "ann", path: () => "/threads" },
  { name: "thread", who: "ann", path: (sent) => `/threads/${sent.rollback.thread}` },
  { name: "new", who: "ann", path: () => "/new?to=CLAUDE" },
  { name: "carry", who: "ann", path: () => "/carry" },
  { name: "paste", who: "ann", path: (sent) => `/paste?question=${sent.chat.id}` },
  { name: "inspect", who: "ann", path: (sent) => `/inspect?id=${sent.deploy.id}` },
];
