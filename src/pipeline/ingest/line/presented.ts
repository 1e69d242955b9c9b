/** What a peer showed before its first message was looked at. */
export interface Presented {
  /** from the call's metadata or the registration */
  readonly token?: string
  /** the verified client certificate of mutual TLS */
  readonly certificate?: PeerCertificate
  /** where it comes from, for rate limits of failures and for logs */
  readonly address: string
}

export interface PeerCertificate {
  readonly commonName: string
  /** every O of the subject */
  readonly organizations: readonly string[]
  /** such as URI:clusterpulse://cluster/west */
  readonly subjectAltName: string
  /** SHA-256, hex without colons, lower case */
  readonly fingerprint: string
  /** of the public key: SHA-256, hex, as requests to join show it; absent where it cannot be read */
  readonly key?: string
  /** ms since the Unix epoch */
  readonly notAfter: number
}
