import { describe, expect, it } from 'vitest'
import { goodbyeWords } from './goodbye-words.ts'

const member = { cluster: 'west', hasToken: false }
const byToken = { cluster: 'west', hasToken: true }

describe('what is said of a goodbye of the hub', () => {
  it.each([
    ['revoked', member, /^it is over: on the hub, `clusterpulse get members west`/],
    ['revoked', byToken, /^it is over: the token .*`clusterpulse connect west --bearer-token`/],
    ['unauthenticated', byToken, /another hub; on the hub, `clusterpulse connect west --bearer-token`/],
    ['not_connected', byToken, /`clusterpulse connect west --bearer-token` makes one$/],
    ['wrong_cluster', byToken, /CLUSTER_NAME and the credential/],
    ['version', member, /^it is over: update the older/],
    ['stopping', member, /^it is over$/],
    ['replaced', byToken, /^it is over$/],
  ] as const)('by %s names the next step where there is one', (code, to, words) =>
    expect(goodbyeWords({ code, message: 'it is over' }, to)).toMatch(words),
  )

  it('adds nothing to a sentence of the hub that names a command, and never its code', () => {
    const message = 'the hub does not accept the cluster any more; `clusterpulse accept west` lets it in again'
    expect(goodbyeWords({ code: 'revoked', message }, member)).toBe(message)
  })
})
