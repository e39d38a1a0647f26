/** True for an error that says that a file, or a folder on the way to it, does not exist. */
export function isMissingFile(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
