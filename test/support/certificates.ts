import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ServerTls, type TlsContext, tlsContext, tlsPaths } from "../../src/runtime/server-tls.ts";

/** True if `openssl` is on the PATH. */
export function hasOpenssl(): boolean {
  return spawnSync("openssl", ["version"]).status === 0;
}

/** A certificate authority for one test, and the certificates that it signs, in a folder that is removed at the end. */
export class Certificates {
  readonly #directory = mkdtempSync(join(tmpdir(), "gangway-certificates-"));
  readonly caFile = this.#path("ca.crt");

  constructor() {
    this.#openssl(
      "req",
      "-x509",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-days",
      "2",
      "-subj",
      "/CN=test authority",
      ...this.#to("ca"),
    );
  }

  /** A certificate and its key for a server or a client; `names` as in `DNS:localhost,IP:127.0.0.1`. */
  sign(name: string, names: string, subject = `/CN=${name}`): { readonly certFile: string; readonly keyFile: string } {
    const request = this.#path(`${name}.csr`);
    const extensions = this.#path(`${name}.ext`);
    writeFileSync(extensions, `subjectAltName=${names}\n`);
    this.#openssl(
      "req",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-subj",
      subject,
      "-keyout",
      this.#path(`${name}.key`),
      "-out",
      request,
    );
    const by = ["-CA", this.caFile, "-CAkey", this.#path("ca.key"), "-CAcreateserial", "-days", "2"];
    this.#openssl("x509", "-req", "-in", request, ...by, "-extfile", extensions, "-out", this.#path(`${name}.crt`));
    return { certFile: this.#path(`${name}.crt`), keyFile: this.#path(`${name}.key`) };
  }

  /** The TLS of a listener on 127.0.0.1, whose certificate `replace` replaces by a new one with another name. */
  serverTls(name: string, clients: ServerTls["clients"]): ServerTls & { readonly replace: (name: string) => void } {
    const clientCaFile = clients === "none" ? null : this.caFile;
    const contextOf = (subject: string): TlsContext => {
      const files = { ...this.sign(subject, "DNS:localhost,IP:127.0.0.1"), clientCaFile };
      return tlsContext(
        files,
        tlsPaths(files).map((path) => this.read(path)),
      );
    };
    let current = contextOf(name);
    const listeners: ((context: TlsContext) => void)[] = [];
    return {
      clients,
      context: () => current,
      onChange: (listener) => void listeners.push(listener),
      replace: (next) => {
        current = contextOf(next);
        for (const listener of listeners) listener(current);
      },
    };
  }

  read(file: string): string {
    return readFileSync(file, "utf8");
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #path(name: string): string {
    return join(this.#directory, name);
  }

  #to(name: string): readonly string[] {
    return ["-keyout", this.#path(`${name}.key`), "-out", this.#path(`${name}.crt`)];
  }

  #openssl(...args: readonly string[]): void {
    execFileSync("openssl", args, { stdio: "pipe" });
  }
}
