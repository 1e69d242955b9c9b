import type { Goodbye } from '#wire'

/** Whom a goodbye is told. */
export interface Addressee {
  readonly cluster: string
  /** it showed a token, and no certificate */
  readonly hasToken: boolean
}

const stands = (cluster: string): string => `on the hub, \`clusterpulse get members ${cluster}\` says how it stands`

/** What helps where the hub's sentence names no command. '': nothing but patience, or the sentence says it. */
function nextStep(code: string, { cluster, hasToken }: Addressee): string {
  switch (code) {
    case 'unauthenticated':
    case 'revoked':
      return hasToken
        ? `the token was revoked, has expired, or is of another hub; on the hub, \`clusterpulse connect ${cluster} --bearer-token\` prints another (COLLECTOR_TOKEN)`
        : stands(cluster)
    case 'wrong_cluster':
      return `this agent says that it is ${cluster}: CLUSTER_NAME and the credential must be of the same cluster`
    case 'version':
      return 'update the older of the two'
    case 'not_connected':
      return hasToken ? `on the hub, \`clusterpulse connect ${cluster} --bearer-token\` makes one` : stands(cluster)
    case 'not_yet':
      return `should this last: ${stands(cluster)}`
    default:
      return ''
  }
}

/** Why the hub ends the stream, for people, with the next step. */
export function goodbyeWords({ code, message }: Pick<Goodbye, 'code' | 'message'>, to: Addressee): string {
  const said = message || `the hub ended the stream (${code})`
  const next = said.includes('`') ? '' : nextStep(code, to)
  return next === '' ? said : `${said}: ${next}`
}
