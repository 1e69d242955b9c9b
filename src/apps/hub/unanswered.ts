import { isKubeError, KubeError } from '#kube'

/** Writes of members are put to the manager by the API server: where none answers, that is what is to be told, and not how it asked. */
export function unanswered(error: unknown): unknown {
  if (
    !isKubeError(error, 'server') ||
    !/failed calling webhook "[^"]+\.admission\.clusterpulse\.io"/.test(error.message)
  )
    return error
  return new KubeError(
    'server',
    'it was not carried out, or not whole: the API server asks a manager of this hub about each write of a member, and none answers; see `kubectl -n clusterpulse get pods`, and decide again once one is ready (docs/guide/kubernetes-hub.md, "When something is down")',
    { cause: error, ...(error.httpStatus !== undefined && { httpStatus: error.httpStatus }) },
  )
}
