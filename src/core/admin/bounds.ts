/** The default maximum number of namespaces. Where the first job of a namespace creates it, any client can make one. */
export const NAMESPACES_MAX = 10_000;
