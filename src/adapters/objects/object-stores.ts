/** Gives plugins the objects of the places that the operator has opened for the namespaces of their jobs. */
import { type ObjectPlace, objectNameOf, placeOfObject } from "../../core/admin/object-places.ts";
import { type DataStore, OBJECT_BYTES_MAX } from "../../core/kinds/plugin-services.ts";
import { fileObject } from "./file-objects.ts";
import { type S3Ports, s3Object } from "./s3-objects.ts";

/** The objects that a job of a namespace can reach, while `signal` is not aborted. */
export function objectStores(places: readonly ObjectPlace[], ports: S3Ports) {
  return (namespace: string, signal: AbortSignal): DataStore => {
    const objectAt = (url: string) => objectOf(url, { places, ports, namespace, signal });
    return {
      head: async (url) => objectAt(url).head(),
      read: async (url) => objectAt(url).read(),
      write: async (url, data) => {
        const object = objectAt(url);
        await object.put(bytesOf(data));
      },
      delete: async (url) => objectAt(url).delete(),
    };
  };
}

type Reach = {
  readonly places: readonly ObjectPlace[];
  readonly ports: S3Ports;
  readonly namespace: string;
  readonly signal: AbortSignal;
};

/** @throws Error if the URL is none, or lies in no place that is open for the namespace. */
function objectOf(url: unknown, { places, ports, namespace, signal }: Reach) {
  signal.throwIfAborted();
  const name = typeof url === "string" ? objectNameOf(url) : null;
  if (name === null) throw new Error(`${shown(url)} must be a URL such as s3://bucket/path or file:///folder/path`);
  const place = placeOfObject(places, { namespace, name });
  if (place === null) throw new Error(`${shown(url)} is in no place that is open for namespace ${namespace}`);
  if (name.scheme === "s3") return s3Object(ports, place, name, signal);
  return fileObject(objectNameOf(place.url)?.path ?? "", name.path);
}

function bytesOf(data: unknown): Uint8Array {
  const body = typeof data === "string" ? Buffer.from(data, "utf8") : data;
  if (!(body instanceof Uint8Array)) throw new Error("data must be text or bytes");
  if (body.byteLength <= OBJECT_BYTES_MAX) return body;
  throw new Error(`data has ${body.byteLength} bytes: an object may have ${OBJECT_BYTES_MAX}`);
}

function shown(url: unknown): string {
  return JSON.stringify(String(url).slice(0, 200));
}
