/**
 * Certificates of members, as objects of the hub: approved CertificateSigningRequests are signed by the hub's CA, those that break a rule are
 * marked as failed with a sentence, and the CA's own state stands in a ConfigMap, where people rotate and end it.
 *
 *   CertificateSigningRequest → judge (#authority) → sign → status.certificate · condition Failed
 *   Authority ⇄ ConfigMap hub-authority: ca.crt, what each CA is for, clusterpulse.io/rotate
 *
 * A server that several processes run has its certificate here too, in a Secret (`servingCertificate`).
 *
 * Who approves is somebody else's business: people, or the rules of registration; `approve`, `deny` and
 * `denyApproved` write what they decided.
 */
export { AUTHORITY_CONFIG_MAP, type CertificatesOptions, certificateReconcilers } from './controllers.ts'
export { AUTO_APPROVED, approve, denialIn, deny, denyApproved } from './decision.ts'
export { type AuthorityAct, isPublished, sayUnusable, unusableIn } from './published.ts'
export { secretStore } from './secret-store.ts'
export { type ServingCertificateOptions, type ServingPair, servingCertificate } from './serving-certificate.ts'
export { type CertificateRequestObject, certificateRequests, type SignedRequest, STREAM_SIGNER } from './signing.ts'
