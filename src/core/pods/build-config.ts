/** What an installation adds to everything it builds. */
export type BuildConfig = {
  /** Names this installation in a label, so that whatever it left behind is known. */
  readonly installation: string;
  /** The DNS domain of services after `svc`, e.g. `cluster.local`; empty: names end in `svc`. */
  readonly clusterDomain: string;
  /** The image of init containers that wait for a master's name; needs `sh` and `nslookup`. */
  readonly initImage: string;
  /** The image of init containers that bring `kubectl` to the launchers of MPIJobs; needs `sh`, `cp`, `sed`, `grep`, `sleep` and `kubectl`. */
  readonly kubectlImage: string;
};
