import { BlockList } from "node:net";
import type { WebListen } from "../../../src/api/web/open-web.ts";

/** A listener for browsers on any free port of this machine. */
export const ANY_WEB: WebListen = {
  listen: "127.0.0.1:0",
  hosts: [],
  trustedProxies: new BlockList(),
  isOptional: false,
  page: null,
};
