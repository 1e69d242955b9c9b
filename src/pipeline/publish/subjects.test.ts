import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isClusterName, parseClusterName } from '#model'
import { coversSubject as covers, subjectToken as tokenOf } from '#nats'
import { subjectOf } from './subjects.ts'

const name = fc
  .stringMatching(/^[a-z0-9]([-a-z0-9]{0,6}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,6}[a-z0-9])?){0,3}$/)
  .filter(isClusterName)

describe('a subject', () => {
  it('carries no name for the default cluster, and the name for every other', () => {
    expect(subjectOf(parseClusterName('west'), 'pods', 'west')).toBe('cluster.pods')
    expect(subjectOf(parseClusterName('west'), 'metrics', 'east')).toBe('cluster.west.metrics')
    expect(subjectOf(parseClusterName('eu.west-1'), 'metrics', 'east')).toBe('cluster.eu_west-1.metrics')
  })

  it('of any two clusters differs, has three tokens, and the stream covers it', () =>
    fc.assert(
      fc.property(name, name, (one, other) => {
        const subject = subjectOf(one, 'pods', '')
        expect(subject.split('.')).toHaveLength(3)
        expect(covers('cluster.>', subject)).toBe(true)
        expect(covers('cluster.*.pods', subject)).toBe(true)
        expect(subject === subjectOf(other, 'pods', '')).toBe(one === other)
        expect(tokenOf(one).replaceAll('_', '.')).toBe(one)
      }),
    ))

  it.each([
    ['cluster.>', 'cluster.pods', true],
    ['>', 'cluster.pods', true],
    ['cluster.*', 'cluster.pods', true],
    ['cluster.*', 'cluster.west.pods', false],
    ['cluster.*.pods', 'cluster.west.pods', true],
    ['cluster.*.pods', 'cluster.west.metrics', false],
    ['cluster.metrics', 'cluster.metrics', true],
    ['cluster.metrics', 'cluster.pods', false],
    ['cluster', 'cluster.pods', false],
    ['cluster.pods.>', 'cluster.pods', false],
    ['*.>', 'cluster.pods', true],
  ])('the filter %s covers %s: %s', (filter, subject, is) => expect(covers(filter, subject)).toBe(is))
})
