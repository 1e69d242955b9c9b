import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { clusterOfCertificate } from './peer-certificate.ts'

const P = 'system:open-cluster-management:'
const certificate = (commonName: string, organizations: readonly string[], subjectAltName = '') => ({
  ...{ commonName, organizations, subjectAltName },
  fingerprint: 'ab'.repeat(32),
  notAfter: 0,
})

describe("a member's certificate", () => {
  it('names the cluster of its organisation and common name', () =>
    expect(clusterOfCertificate(certificate(`${P}west:a1`, [`${P}west`]))).toEqual({ cluster: 'west', as: 'member' }))

  it.each([
    ['of another cluster by a prefix', `${P}cluster1:a`, [`${P}cluster10`]],
    ['of another cluster by a prefix, turned round', `${P}cluster10:a`, [`${P}cluster1`]],
    ['with a second organisation', `${P}west:a`, [`${P}west`, `${P}east`]],
    ['with an organisation of power', `${P}west:a`, [`${P}west`, 'system:masters']],
    ['with one organisation twice', `${P}west:a`, [`${P}west`, `${P}west`]],
    ['without an organisation', `${P}west:a`, []],
    ['with three parts', `${P}west:a:b`, [`${P}west`]],
    ['without an agent', `${P}west:`, [`${P}west`]],
    ['without a cluster', `${P}:a`, [P]],
    ['with two common names, joined as one', `${P}west:a,${P}east:a`, [`${P}west`]],
    ['of a name that no namespace has', `${P}West:a`, [`${P}West`]],
    ['of all members', `${P}managed-clusters:a`, [`${P}managed-clusters`]],
    ['in a common name of our own form', 'clusterpulse:cluster:west', [`${P}west`]],
  ])('is nobody %s', (_, commonName, organizations) =>
    expect(clusterOfCertificate(certificate(commonName, organizations))).toBeUndefined(),
  )

  it.each(['DNS:west', 'URI:clusterpulse://cluster/east', 'IP Address:10.0.0.1'])(
    'is nobody with the alternative name %s',
    (names) => expect(clusterOfCertificate(certificate(`${P}west:a`, [`${P}west`], names))).toBeUndefined(),
  )

  it('never names a cluster that is not written whole in both of its names', () => {
    const part = fc.constantFrom('west', 'we', 'westa', 'east', 'a', '', ':', P, 'system:', 'West')
    const text = fc.array(part, { maxLength: 4 }).map((parts) => P + parts.join(''))
    fc.assert(
      fc.property(text, fc.array(text, { maxLength: 3 }), (commonName, organizations) => {
        const named = clusterOfCertificate(certificate(commonName, organizations))
        if (!named) return
        expect(organizations).toEqual([`${P}${named.cluster}`])
        expect(commonName.startsWith(`${P}${named.cluster}:`)).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })
})
