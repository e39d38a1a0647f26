/** Encrypts texts so that they open only with the same key and for the same use. */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

/** In base64. */
export type Sealed = { readonly nonce: string; readonly text: string; readonly tag: string };

const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
/** The nonce size that GCM is made for. */
const NONCE_BYTES = 12;
/** A shorter tag would be easier to forge. */
const TAG_BYTES = 16;

/** `boundTo`: what the text is for. */
export function seal(key: Uint8Array, boundTo: string, text: string): Sealed {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(boundTo));
  const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  const encode = (part: Buffer) => part.toString("base64");
  return { nonce: encode(nonce), text: encode(sealed), tag: encode(cipher.getAuthTag()) };
}

/** Throws if it was sealed with another key or for another use, or if it was changed. */
export function unseal(key: Uint8Array, boundTo: string, sealed: Sealed): string {
  const decode = (part: string) => Buffer.from(part, "base64");
  const options = { authTagLength: TAG_BYTES };
  const decipher = createDecipheriv(CIPHER, key, decode(sealed.nonce), options).setAAD(Buffer.from(boundTo));
  decipher.setAuthTag(decode(sealed.tag));
  return Buffer.concat([decipher.update(decode(sealed.text)), decipher.final()]).toString("utf8");
}

/** A key for one use. It tells nothing of the key that it comes from, nor of those for other uses. */
export function keyFor(use: string, key: Uint8Array): Buffer {
  return Buffer.from(hkdfSync("sha256", key, "", use, KEY_BYTES));
}
