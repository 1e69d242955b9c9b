const ofTest = /^connection test failed: /
const request = /\b(?:GET|LIST|WATCH|POST) \S+: /g
/** The whole API is away: which of its lists was asked at that moment says nothing. */
const ofList =
  /^failed to get node metrics: (?=https?:\/\/|nothing listens at |the connection to |the name of |no TLS )/

/** Why something failed, without the request that was tried: that is for whoever mends it. */
export const causeIn = (message: string): string =>
  message.replace(ofTest, '').replaceAll(request, '').replace(ofList, '')
