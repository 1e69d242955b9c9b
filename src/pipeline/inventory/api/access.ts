import type { IncomingMessage } from 'node:http'

/** What a request needs at the cluster's own API (group `kollect.dev`). */
export interface Review {
  readonly verb: 'get' | 'list'
  readonly resource: 'kollectinventories' | 'kollecttargets' | 'kollectclusterinventories'
  /** absent: in the whole cluster */
  readonly namespace?: string
  readonly name?: string
}

/** What is said to who asks. */
export type Verdict = 'allowed' | 'forbidden' | 'unauthenticated'

/** Who may read. */
export interface ApiAccess {
  /** @throws where it cannot be found out */
  judge(request: IncomingMessage, review: Review): Promise<Verdict>
}

/** As people say it to kubectl: `list kollectinventories.kollect.dev in team-a`. */
export const wordsOf = ({ verb, resource, namespace, name }: Review): string =>
  `${verb} ${resource}.kollect.dev${name === undefined ? '' : ` ${name}`} ${namespace === undefined ? 'in the whole cluster' : `in ${namespace}`}`
