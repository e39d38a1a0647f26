/** Settings of the installation that are used in all manifests. */
export type BuildConfig = {
  /** The value of the label `gangway.dev/installation`, by which its objects are found again. */
  readonly installation: string;
  /** The DNS domain of services after `svc`, such as `cluster.local`. Empty: names end in `svc`. */
  readonly clusterDomain: string;
  /** The image of init containers that wait until the name of a master resolves. Needs `sh` and `nslookup`. */
  readonly initImage: string;
  /**
   * The image of init containers that copy `kubectl` into the launchers of MPIJobs. Needs `sh`, `cp`, `sed`, `grep`,
   * `sleep` and `kubectl`.
   */
  readonly kubectlImage: string;
};
