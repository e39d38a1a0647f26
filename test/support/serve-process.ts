import { MainProcess } from "./main-process.ts";

/** `gangway serve` as a child process. */
export class ServeChild extends MainProcess {
  readonly roles: string;

  constructor(roles: string, env: Readonly<Record<string, string>>, main?: string) {
    super(["serve", "--roles", roles, "--listen", "127.0.0.1:0"], env, { main });
    this.roles = roles;
  }

  /** Resolves once it serves. Throws if it ends first. */
  serving(): Promise<void> {
    return this.printed(`serving ${this.roles.split(",").join(", ")}`);
  }

  /** Stops the whole process: it answers nothing, but its connections stay open. */
  freeze(): void {
    this.child.kill("SIGSTOP");
  }

  thaw(): void {
    this.child.kill("SIGCONT");
  }
}
