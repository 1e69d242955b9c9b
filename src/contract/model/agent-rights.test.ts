import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type AgentRights, agentRightsText, parseAgentRights } from './agent-rights.ts'

describe('the rights of an agent on its member', () => {
  it('are read back as they were written', () => {
    const namespace = fc.stringMatching(/^[a-z]([-a-z0-9]{0,20}[a-z0-9])?$/).filter((name) => !name.startsWith('kube-'))
    const rights = fc.oneof(
      fc.constantFrom<AgentRights>({ kind: 'observe' }, { kind: 'full' }),
      fc
        .uniqueArray(namespace, { minLength: 1, maxLength: 50 })
        .map((namespaces): AgentRights => ({ kind: 'namespaced', namespaces })),
    )
    fc.assert(
      fc.property(rights, (one) => {
        expect(parseAgentRights(agentRightsText(one))).toEqual(one)
      }),
    )
  })

  it.each([
    ...['', 'admin', 'Observe', 'namespaced', 'namespaced:', 'namespaced:a,', 'namespaced:A', 'namespaced:a b'],
    ...['namespaced:kube-system', 'namespaced:*', 'full,observe', `namespaced:${'a'.repeat(64)}`],
    `namespaced:${Array.from({ length: 51 }, (_, n) => `n${n}`).join()}`,
  ])('are refused in a sentence where they are none: %j', (text) =>
    expect(typeof parseAgentRights(text)).toBe('string'),
  )
})
