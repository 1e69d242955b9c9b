import { ApiProblem } from '../contract.ts'

/** What went wrong, as a problem, whatever it was. */
export const problemOf = (cause: unknown): ApiProblem =>
  cause instanceof ApiProblem
    ? cause
    : new ApiProblem(0, { error: String(cause), code: 'unexpected', requestId: '' }, { cause })

/** Nothing is there to answer: neither a hub, nor behind the proxy that speaks for it. */
export const isGone = ({ status, code }: ApiProblem): boolean => status === 0 || (code === 'no_answer' && status >= 502)

/** There was no hub to answer, or it had no state to answer from: as soon as the hub is heard and whole, asking again helps. */
export const isAway = (problem: ApiProblem): boolean => isGone(problem) || stateless.has(problem.code)
const stateless: ReadonlySet<string> = new Set(['store_unavailable', 'state_loading', 'state_missing'])

/** The hub does not answer now; what it answered before may stay. A refusal is an answer. */
export const mayKeep = ({ status }: ApiProblem): boolean => status === 0 || status === 429 || status >= 500
