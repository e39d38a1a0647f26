/** Connects the listeners of a process with the files of their certificate. */
import { PEM_LIMIT, type TlsConfig } from "../config/config-tls.ts";
import type { Clock } from "../runtime/clock.ts";
import { followFiles } from "../runtime/follow-files.ts";
import { readBoundedFile } from "../runtime/read-bounded-file.ts";
import { type ServerTls, type TlsContext, tlsContext, tlsPaths } from "../runtime/server-tls.ts";
import type { Telemetry } from "../telemetry/events.ts";
import { runLoops } from "./base.ts";

/** Follows the files until the parts are closed. Null: the listeners speak no TLS. */
export function followTls(
  config: TlsConfig | null,
  of: { readonly clock: Clock; readonly telemetry: Telemetry; readonly parts: AsyncDisposableStack },
): ServerTls | null {
  if (config === null) return null;
  const { clients, files, texts, context } = config;
  const { clock, telemetry, parts } = of;
  const listeners: ((context: TlsContext) => void)[] = [];
  const ports = {
    clock,
    readFile: (path: string) => readBoundedFile(path, PEM_LIMIT),
    onRead: () => {
      for (const listener of listeners) listener(followed.now());
      telemetry.certificateRead({ file: files.certFile });
    },
    onError: (error: unknown) => telemetry.loopFailed({ loop: "certificate", error }),
  };
  const followed = followFiles(ports, {
    paths: tlsPaths(files),
    texts,
    value: context,
    parse: (read) => tlsContext(files, read),
  });
  runLoops(parts, followed.run);
  return { clients, context: followed.now, onChange: (listener) => void listeners.push(listener) };
}
