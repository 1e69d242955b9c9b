/**
 * The hub's CA: who a member is, and the certificate that proves it. A request is judged by pure rules, an approved one is signed, and nothing
 * of it enters the certificate but its key and the member's name.
 *
 *   PKCS#10 → judgeRequest → (approved by people or rule) → Authority.signClient → certificate → Authority.memberOf
 *
 * It is trusted for members and for nothing else; a new CA takes over while the former one is still trusted. Where it is kept, and how its
 * key is protected there, is handed in.
 */
export {
  Authority,
  type AuthorityOptions,
  type IssuedCertificate,
  type Root,
} from './authority.ts'
export {
  type CertificateRequest,
  MAX_REQUEST_BYTES,
  type NameWord,
  ORGANIZATION,
  parseCertificateRequest,
} from './certificate-request.ts'
export {
  issueServerCertificate,
  newAuthorityPair,
  newKeyPair,
  type PairText,
  readAuthorityPair,
  type SigningPair,
} from './certificates.ts'
export { AuthorityChangedError, AuthorityUnusableError, CertificateRequestError } from './errors.ts'
export {
  API_CLIENT_SIGNER,
  CLUSTER_LABEL,
  CLUSTERS_EXTRA,
  type Judgement,
  judgeRequest,
  type RecognisedRequest,
  type RequestFault,
  type SigningRequest,
} from './judge.ts'
export {
  clusterOfGroup,
  isMemberCluster,
  isReservedNamespace,
  MEMBERS_GROUP,
  type MemberName,
  type MemberSubject,
  memberGroup,
  memberOfUser,
  memberUser,
  subjectOf,
} from './member.ts'
export { isSignedByHolder, type MemberCertificate } from './member-certificate.ts'
export { renewalTime } from './renewal.ts'
export { type AuthorityStore, folderStore, type Kept, type Sealer } from './store.ts'
export { strangerIn } from './stranger.ts'
