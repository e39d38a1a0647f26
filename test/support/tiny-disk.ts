import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A file system of its own that has few bytes, in a new folder. */
export class TinyDisk {
  readonly folder: string;

  private constructor(folder: string) {
    this.folder = folder;
  }

  /** Null: this process may not mount one, which needs root (on Linux: CAP_SYS_ADMIN). */
  static mount(bytes: number): TinyDisk | null {
    const folder = mkdtempSync(join(tmpdir(), "gangway-disk-"));
    const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${bytes}`, "tmpfs", folder]);
    if (status === 0) return new TinyDisk(folder);
    rmSync(folder, { recursive: true });
    return null;
  }

  unmount(): void {
    spawnSync("umount", ["--lazy", this.folder]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The reason why a test of full disks is skipped. False: it runs. */
export function noTinyDisk(): string | false {
  const disk = TinyDisk.mount(4096);
  disk?.unmount();
  return disk === null ? "needs root, to mount a small file system" : false;
}
