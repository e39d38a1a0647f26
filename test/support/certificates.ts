import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ServerTls, type TlsContext, tlsContext, tlsPaths } from "../../src/runtime/server-tls.ts";

/** True if `openssl` is on the PATH. */
export function hasOpenssl(): boolean {
  return spawnSync("openssl", ["version"]).status === 0;
}

export type IssuedCertificate = {
  /** Lines such as `subjectAltName=DNS:a`. */
  readonly extensions: readonly string[];
  readonly subject?: string;
  /** Negative: it has expired. */
  readonly days?: number;
  /** Omitted: it is valid from now on. */
  readonly startMs?: number;
  /** The certificate that signs it. Null: the authority. */
  readonly by?: { readonly cert: string } | "self" | null;
};

/** Keys of RSA take a second of a processor each. */
const NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];

/** A certificate authority for one test, and the certificates that it signs, in a folder that is removed at the end. */
export class Certificates {
  readonly #directory = mkdtempSync(join(tmpdir(), "gangway-certificates-"));
  readonly caFile = this.#path("ca.crt");
  #issued = 0;

  constructor() {
    this.#openssl("req", "-x509", ...NEW_KEY, "-nodes", "-days", "2", "-subj", "/CN=test authority", ...this.#to("ca"));
  }

  /** A certificate and its key for a server or a client; `names` as in `DNS:localhost,IP:127.0.0.1`. */
  sign(name: string, names: string, subject = `/CN=${name}`): { readonly certFile: string; readonly keyFile: string } {
    const request = this.#path(`${name}.csr`);
    const extensions = this.#path(`${name}.ext`);
    writeFileSync(extensions, `subjectAltName=${names}\n`);
    this.#openssl("req", ...NEW_KEY, "-nodes", "-subj", subject, "-keyout", this.#path(`${name}.key`), "-out", request);
    const by = ["-CA", this.caFile, "-CAkey", this.#path("ca.key"), "-CAcreateserial", "-days", "2"];
    this.#openssl("x509", "-req", "-in", request, ...by, "-extfile", extensions, "-out", this.#path(`${name}.crt`));
    return { certFile: this.#path(`${name}.crt`), keyFile: this.#path(`${name}.key`) };
  }

  /**
   * A certificate with any fault, followed by those between it and its authority, and its key. All of them have one
   * key, because keys take time.
   */
  issue({ extensions, subject = "/CN=me", days = 2, startMs, by = null }: IssuedCertificate): {
    readonly cert: string;
    readonly key: string;
  } {
    this.#issued += 1;
    const [key, request] = [this.#path("issued.key"), this.#path("issued.csr")];
    if (this.#issued === 1) this.#openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key);
    const at = (end: string) => this.#path(`issued-${this.#issued}.${end}`);
    writeFileSync(at("ext"), `${extensions.join("\n")}\n`);
    this.#openssl("req", "-utf8", "-new", "-key", key, "-subj", subject, "-out", request);
    const above = by === null || by === "self" ? "" : by.cert;
    if (above !== "") writeFileSync(at("by.crt"), above);
    const signer = by === null || by === "self" ? [this.caFile, this.#path("ca.key")] : [at("by.crt"), key];
    const [ca = "", caKey = ""] = signer;
    if (startMs !== undefined) this.#sign({ request, at, ca, caKey, startMs });
    else {
      const signed = by === "self" ? ["-signkey", key] : ["-CA", ca, "-CAkey", caKey, "-CAcreateserial"];
      const given = ["-in", request, "-days", String(days), "-extfile", at("ext"), "-out", at("crt")];
      this.#openssl("x509", "-req", ...signed, ...given);
    }
    return { cert: this.read(at("crt")) + above, key: this.read(key) };
  }

  /** Signs a certificate that is valid from a time on. */
  #sign(of: { request: string; at: (end: string) => string; ca: string; caKey: string; startMs: number }): void {
    const { request, at, ca, caKey, startMs } = of;
    const time = (ms: number) => `${new Date(ms).toISOString().replace(/[-:T]/g, "").slice(0, 14)}Z`;
    writeFileSync(at("index"), "");
    const settings = `[ca]\ndefault_ca=own\n[own]\ndatabase=${at("index")}\nnew_certs_dir=${this.#directory}\n`;
    writeFileSync(at("cnf"), `${settings}rand_serial=yes\ndefault_md=sha256\npolicy=any\n[any]\ncommonName=optional\n`);
    const dates = ["-startdate", time(startMs), "-enddate", time(startMs + 86_400_000)];
    const signed = ["-cert", ca, "-keyfile", caKey, "-extfile", at("ext"), ...dates];
    this.#openssl("ca", "-batch", "-notext", "-config", at("cnf"), ...signed, "-in", request, "-out", at("crt"));
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
