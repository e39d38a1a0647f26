/**
 * The most bytes that a pod may have as JSON. API servers read no larger request, so no cluster takes a larger pod.
 * Source: `MaxRequestBodyBytes` of k8s.io/apiserver.
 */
export const POD_BYTES_MAX = 3 * 1024 * 1024;
