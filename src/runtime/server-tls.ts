/** The TLS of this process' listeners: their certificate, and whether clients show one too. */
import { X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContextOptions } from "node:tls";
import { certificatesIn, isClosedCertificate } from "./scan-text.ts";
import { FORWARD_SECRET_CIPHERS } from "./tls-ciphers.ts";

/** `required`: a client without a certificate that the authorities signed gets no connection. */
export type ClientCertificates = "none" | "optional" | "required";

export type TlsFiles = {
  readonly certFile: string;
  readonly keyFile: string;
  /** The authorities that sign the certificates of clients. Null: clients show none. */
  readonly clientCaFile: string | null;
};

/** The options of a context of `node:tls`. */
export type TlsContext = Readonly<Pick<SecureContextOptions, "cert" | "key" | "ca" | "minVersion" | "ciphers">>;

/** The TLS of a listener. The context changes when the files change; connections that exist keep theirs. */
export type ServerTls = {
  readonly clients: ClientCertificates;
  readonly context: () => TlsContext;
  /** Calls the listener after each change. */
  readonly onChange: (listener: (context: TlsContext) => void) => void;
};

export function tlsPaths({ certFile, keyFile, clientCaFile }: TlsFiles): readonly string[] {
  return [certFile, keyFile, ...(clientCaFile === null ? [] : [clientCaFile])];
}

/** Makes a context of the texts of the files, in the order of `tlsPaths`. Throws an error that names the wrong file. */
export function tlsContext(files: TlsFiles, [cert = "", key = "", ca]: readonly string[]): TlsContext {
  requireCertificates(files.certFile, cert);
  if (!/-----BEGIN ([A-Z]+ )?PRIVATE KEY-----/.test(key)) throw new Error(`${files.keyFile} has no private key in PEM`);
  if (ca !== undefined) requireCertificates(files.clientCaFile ?? "", ca);
  const protocol = { minVersion: "TLSv1.2", ciphers: FORWARD_SECRET_CIPHERS } as const;
  const context: TlsContext = { cert, key, ...protocol, ...(ca === undefined ? {} : { ca }) };
  try {
    createSecureContext(context);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`${files.keyFile} is not the key of the certificate in ${files.certFile}: ${why}`);
  }
  return context;
}

/** Node ignores what it cannot read of a file with authorities. */
function requireCertificates(path: string, text: string): void {
  const certificates = certificatesIn(text).filter(isClosedCertificate);
  if (certificates.length === 0) throw new Error(`${path} has no certificate in PEM`);
  for (const one of certificates) {
    try {
      new X509Certificate(one);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new Error(`${path} has a certificate that cannot be read: ${why}`);
    }
  }
}
