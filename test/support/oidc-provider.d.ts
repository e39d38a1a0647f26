/** The part of the package that the tests use; it brings no types of its own. */
declare module "oidc-provider" {
  import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";

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
    /** Answers with a redirect that goes on with the login. */
    interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>;
    readonly DeviceCode: { findByUserCode(code: string): Promise<GrantedCode | undefined> };
    readonly Grant: new (of: {
      accountId: string;
      clientId: string;
    }) => Grant;
  }
}
