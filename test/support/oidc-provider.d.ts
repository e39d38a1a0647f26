/** The part of the package that the tests use; it brings no types of its own. */
declare module "oidc-provider" {
  import type { RequestListener } from "node:http";

  type GrantedCode = {
    accountId: string;
    grantId: string;
    scope: string;
    authTime: number;
    save(ttl?: number): Promise<string>;
  };
  type Grant = { addOIDCScope(scope: string): void; save(): Promise<string> };
  export class Provider {
    constructor(issuer: string, configuration: object);
    callback(): RequestListener;
    readonly DeviceCode: { findByUserCode(code: string): Promise<GrantedCode | undefined> };
    readonly Grant: new (of: {
      accountId: string;
      clientId: string;
    }) => Grant;
  }
}
