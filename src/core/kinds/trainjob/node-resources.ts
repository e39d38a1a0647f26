/** What a node of a trainer has, from which the number of its processes follows. */
import { type Json, type JsonObject, objectAt } from "../../../runtime/json.ts";
import { parseMilli } from "../../pods/quantity.ts";

/** The GPUs of a container: the sum of the resources whose names have `gpu`, of the limits, or else of the requests. */
export function gpusOf(container: JsonObject): number {
  const resources = objectAt(container, "resources");
  const gpus = (of: JsonObject) => {
    return Object.entries(of).reduce((sum, [name, amount]) => (/gpu/i.test(name) ? sum + wholeOf(amount) : sum), 0);
  };
  return gpus(objectAt(resources, "limits")) || gpus(objectAt(resources, "requests"));
}

/** The CPUs of a container, rounded up. 0: it names none. */
export function cpusOf(container: JsonObject): number {
  const resources = objectAt(container, "resources");
  return wholeOf(objectAt(resources, "requests")["cpu"]) || wholeOf(objectAt(resources, "limits")["cpu"]);
}

function wholeOf(amount: Json | undefined): number {
  const milli = amount === undefined || amount === null ? null : parseMilli(String(amount));
  return milli === null ? 0 : Math.ceil(Number(milli) / 1000);
}
