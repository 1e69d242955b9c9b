import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { coversSubject } from '#nats'
import { isOwnSubject, subjectFilter, subjectFor } from './subject.ts'

const writing = { cluster: 'eu.west-1', namespace: 'team-a', inventory: 'api.v2' }
const name = fc.stringMatching(/^[a-z0-9]([-a-z0-9]{0,6}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,6}[a-z0-9])?){0,2}$/)
const template = fc.constantFrom(
  'inventory.{cluster}.{namespace}.{name}',
  'a.{cluster}.b-{namespace}.c.{name}',
  '{name}.{namespace}.{cluster}',
)

describe('the subject of an inventory', () => {
  it.each([
    ['inventory.{cluster}.{namespace}.{name}', 'inventory.eu_west-1.team-a.api_v2', 'inventory.*.*.*', true],
    ['i.{cluster}.{namespace}-{name}', 'i.eu_west-1.team-a-api_v2', 'i.*.*', false],
    ['inv.{cluster}-{name}', 'inv.eu_west-1-api_v2', 'inv.*', false],
    ['kollect.events', 'kollect.events', 'kollect.events', false],
  ])('of %s is %s, and %s covers it', (text, subject, filter, isOwn) => {
    expect(subjectFor(text, writing)).toBe(subject)
    expect(subjectFilter(text)).toBe(filter)
    expect(isOwnSubject(text)).toBe(isOwn)
  })

  it('of the cluster has a token for the namespace it has not', () =>
    expect(subjectFor('i.{namespace}.{name}', { ...writing, namespace: '' })).toBe('i._.api_v2'))

  it('of any two inventories differs, and has as many tokens as it is written with', () =>
    fc.assert(
      fc.property(template, name, name, name, name, (text, cluster, namespace, inventory, other) => {
        const one = { cluster, namespace, inventory }
        const subject = subjectFor(text, one)
        expect(subject.split('.')).toHaveLength(text.split('.').length)
        expect(coversSubject(subjectFilter(text), subject)).toBe(true)
        expect(subjectFor(text, { ...one, inventory: other }) === subject).toBe(other === inventory)
      }),
    ))

  it('holds nothing that means something to NATS, whatever the values hold', () =>
    fc.assert(
      fc.property(fc.string(), fc.string(), (namespace, inventory) => {
        const subject = subjectFor('i.{namespace}.{name}', { cluster: 'west', namespace, inventory })
        expect(subject).toMatch(/^i\.[A-Za-z0-9_=-]+\.[A-Za-z0-9_=-]+$/)
      }),
    ))
})
