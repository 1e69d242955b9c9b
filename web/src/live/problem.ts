import { ApiProblem } from '../contract.ts'

/** What went wrong, as a problem, whatever it was. */
export const problemOf = (cause: unknown): ApiProblem =>
  cause instanceof ApiProblem
    ? cause
    : new ApiProblem(0, { error: String(cause), code: 'unexpected', requestId: '' }, { cause })
