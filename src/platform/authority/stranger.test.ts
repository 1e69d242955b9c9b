import type { JsonName } from '@peculiar/x509'
import { describe, expect, it } from 'vitest'
import { strangerIn } from './index.ts'
import { aRequest, signingRequest, subjectOfMember } from './test/requests.ts'

const OCM = 'system:open-cluster-management:'
const ADD_ON = `${OCM}cluster:east:addon:work`

describe('a request that an agent of east made', () => {
  const stranger = async (subject: JsonName) => strangerIn(signingRequest((await aRequest(subject)).pem))

  it.each<[string, JsonName]>([
    ['its member', subjectOfMember('east', 'a')],
    ['its member, with the group of all', [...subjectOfMember('east', 'a'), { O: [`${OCM}managed-clusters`] }]],
    [
      'an add-on of it',
      [{ CN: [`${ADD_ON}:agent:a`] }, { O: [ADD_ON] }, { O: [`${OCM}addon:work`] }, { O: ['system:authenticated'] }],
    ],
    ['an add-on with a unit', [{ CN: [`${ADD_ON}:agent:a`] }, { OU: ['any'] }]],
  ])('may name %s', async (_, subject) => expect(await stranger(subject)).toBeUndefined())

  it.each<[string, JsonName]>([
    ['another member', subjectOfMember('west', 'a')],
    ['another group', [{ CN: [`${OCM}east:a`] }, { O: [`${OCM}west`] }]],
    ['administrators', [...subjectOfMember('east', 'a'), { O: ['system:masters'] }]],
    ['a user', [{ CN: ['admin'] }]],
    ['an add-on of another', [{ CN: [`${OCM}cluster:west:addon:work:agent:a`] }]],
    ['an add-on of one whose name begins alike', [{ CN: [`${OCM}cluster:east-2:addon:work:agent:a`] }]],
    ['any other word of a subject', [...subjectOfMember('east', 'a'), { L: ['here'] }]],
  ])('may not name %s', async (_, subject) => expect(await stranger(subject)).toMatch(/is not of cluster "east"/))

  it('is no business of ours where another signer is asked, and is refused where nobody can read it', async () => {
    const { pem } = await aRequest(subjectOfMember('west', 'a'))
    expect(strangerIn(signingRequest(pem, { signerName: 'example.com/any' }))).toBeUndefined()
    expect(strangerIn(signingRequest('nothing'))).toMatch(/CERTIFICATE REQUEST/)
    expect(strangerIn(signingRequest(pem, {}, {}))).toMatch(/is not of cluster ""/)
  })
})
