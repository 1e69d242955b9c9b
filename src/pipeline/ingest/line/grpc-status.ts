/** As in gRPC, https://grpc.github.io/grpc/core/md_doc_statuscodes.html */
export const grpcStatus = {
  ok: 0,
  invalidArgument: 3,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  unavailable: 14,
  unauthenticated: 16,
} as const
