import { ApiProblem } from '../contract.ts'

/** What went wrong, as a problem, whatever it was. */
export const problemOf = (cause: unknown): ApiProblem =>
  cause instanceof ApiProblem
    ? cause
    : new ApiProblem(0, { error: String(cause), code: 'unexpected', requestId: '' }, { cause })

/** The hub does not answer now; what it answered before may stay. A refusal is an answer. */
export const mayKeep = ({ status }: ApiProblem): boolean => status === 0 || status === 429 || status >= 500
