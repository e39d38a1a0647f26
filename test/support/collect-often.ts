/** Preloaded into a process under test: it collects garbage all the time, so that nothing lives on by chance. */
import { collectGarbage } from "./collect-garbage.ts";

const EVERY_MS = 20;

setInterval(collectGarbage, EVERY_MS).unref();
