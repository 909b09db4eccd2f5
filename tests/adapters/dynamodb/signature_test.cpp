#include "signature.h"

#include "request_file.h"

#include <gtest/gtest.h>

namespace varve::dynamodb {
namespace {

const Credentials suite_credentials{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};
const Scope suite_scope{"us-east-1", "service"};
const Time suite_time = parse_time("2015-08-30T12:36:00Z");

struct Vector {
    std::string name;
    std::string request;
    std::string canonical_request_hash;  ///< the last line of the string to sign
    std::string signature;
};

/// AWS's signature test suite. The hash and the signature of each are as published there.
const std::vector<Vector> suite{
    {"get-header-key-duplicate",
     "GET / "
     "HTTP/"
     "1.1\nHost:example.amazonaws.com\nMy-Header1:value2\nMy-Header1:value2\nMy-Header1:value1\nX-Amz-Date:"
     "20150830T123600Z",
     "dc7f04a3abfde8d472b0ab1a418b741b7c67174dad1551b4117b15527fbe966c",
     "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"},
    {"get-header-value-multiline",
     "GET / HTTP/1.1\nHost:example.amazonaws.com\nMy-Header1:value1\n  value2\n     "
     "value3\nX-Amz-Date:20150830T123600Z",
     "e99419459a677bc11de234014be3c4e72c1ea5b454ceb58b613061f5d7a162e8",
     "cfd34249e4b1c8d6b91ef74165d41a32e5fab3306300901bb65a51a73575eefd"},
    {"get-header-value-order",
     "GET / "
     "HTTP/"
     "1.1\nHost:example.amazonaws.com\nMy-Header1:value4\nMy-Header1:value1\nMy-Header1:value3\nMy-Header1:value2\nX-"
     "Amz-Date:20150830T123600Z",
     "31ce73cd3f3d9f66977ad3dd957dc47af14df92fcd8509f59b349e9137c58b86",
     "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01"},
    {"get-header-value-trim",
     "GET / HTTP/1.1\nHost:example.amazonaws.com\nMy-Header1: value1\nMy-Header2: \"a   b   "
     "c\"\nX-Amz-Date:20150830T123600Z",
     "a726db9b0df21c14f559d0a978e563112acb1b9e05476f0a6a1c7d68f28605c7",
     "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
    {"get-unreserved",
     "GET /-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz "
     "HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z",
     "6a968768eefaa713e2a6b16b589a8ea192661f098f37349f4e2c0082757446f9",
     "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
    {"get-utf8", "GET /ሴ HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z",
     "2a0a97d02205e45ce2e994789806b19270cfbbb0921b278ccf58f5249ac42102",
     "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
    {"get-vanilla", "GET / HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z",
     "bb579772317eb040ac9ed261061d46c1f17a8133879d6129b6e1c25292927e63",
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-vanilla-empty-query-key",
     "GET /?Param1=value1 HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z",
     "1e24db194ed7d0eec2de28d7369675a243488e08526e8c1c73571282f7c517ab",
     "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
    {"get-vanilla-query-order-key",
     "GET /?Param1=value2&Param1=Value1 HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z",
     "704b4cef673542d84cdff252633f065e8daeba5f168b77116f8b1bcaf3d38f89",
     "eedbc4e291e521cf13422ffca22be7d2eb8146eecf653089df300a15b2382bd1"},
    {"get-vanilla-query-order-key-case",
     "GET /?Param2=value2&Param1=value1 HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z",
     "816cd5b414d056048ba4f7c5386d6e0533120fb1fcfa93762cf0fc39e2cf19e0",
     "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
    {"get-vanilla-query-order-value",
     "GET /?Param1=value2&Param1=value1 HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z",
     "c968629d70850097a2d8781c9bf7edcb988b04cac14cca9be4acc3595f884606",
     "5772eed61e12b33fae39ee5e7012498b51d56abc0abb7c60486157bd471c4694"},
    {"get-vanilla-query-unreserved",
     "GET "
     "/?-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz=-._~"
     "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz "
     "HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z",
     "c30d4703d9f799439be92736156d47ccfb2d879ddf56f5befa6d1d6aab979177",
     "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197"},
    {"get-vanilla-utf8-query", "GET /?ሴ=bar HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z",
     "eb30c5bed55734080471a834cc727ae56beb50e5f39d1bff6d0d38cb192a7073",
     "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
    {"get-relative", "GET /example/.. HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z",
     "bb579772317eb040ac9ed261061d46c1f17a8133879d6129b6e1c25292927e63",
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-relative-relative",
     "GET /example1/example2/../.. HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z",
     "bb579772317eb040ac9ed261061d46c1f17a8133879d6129b6e1c25292927e63",
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-slash", "GET // HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z",
     "bb579772317eb040ac9ed261061d46c1f17a8133879d6129b6e1c25292927e63",
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-slash-dot-slash", "GET /./ HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z",
     "bb579772317eb040ac9ed261061d46c1f17a8133879d6129b6e1c25292927e63",
     "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
    {"get-slash-pointless-dot", "GET /./example HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z",
     "214d50c111a8edc4819da6a636336472c916b5240f51e9a51b5c3305180cf702",
     "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5"},
    {"get-slashes", "GET //example// HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z",
     "cb96b4ac96d501f7c5c15bc6d67b3035061cfced4af6585ad927f7e6c985c015",
     "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"},
    {"get-space", "GET /example space/ HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z",
     "63ee75631ed7234ae61b5f736dfc7754cdccfedbff4b5128a915706ee9390d86",
     "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
    {"post-header-key-case", "POST / HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z",
     "553f88c9e4d10fc9e109e2aeb65f030801b70c2f6468faca261d401ae622fc87",
     "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
    {"post-header-key-sort",
     "POST / HTTP/1.1\nHost:example.amazonaws.com\nMy-Header1:value1\nX-Amz-Date:20150830T123600Z",
     "9368318c2967cf6de74404b30c65a91e8f6253e0a8659d6d5319f1a812f87d65",
     "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"},
    {"post-header-value-case",
     "POST / HTTP/1.1\nHost:example.amazonaws.com\nMy-Header1:VALUE1\nX-Amz-Date:20150830T123600Z",
     "d51ced243e649e3de6ef63afbbdcbca03131a21a7103a1583706a64618606a93",
     "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d"},
    {"post-vanilla-query", "POST /?Param1=value1 HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z",
     "9d659678c1756bb3113e2ce898845a0a79dbbc57b740555917687f1b3340fbbd",
     "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11"},
    {"post-x-www-form-urlencoded",
     "POST / "
     "HTTP/1.1\nContent-Type:application/"
     "x-www-form-urlencoded\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z\n\nParam1=value1",
     "42a5e5bb34198acb3e84da4f085bb7927f2bc277ca766e6d19c73c2154021281",
     "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
    {"post-x-www-form-urlencoded-parameters",
     "POST / HTTP/1.1\nContent-Type:application/x-www-form-urlencoded; "
     "charset=utf8\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z\n\nParam1=value1",
     "2e1cf7ed91881a30569e46552437e4156c823447bf1781b921b5d486c568dd1c",
     "1a72ec8f64bd914b0e42e42607c7fbce7fb2c7465f63e3092b3b0d39fa77a6fe"},
    {"post-sts-header-before",
     "POST / "
     "HTTP/1.1\nHost:example.amazonaws.com\nX-Amz-Date:20150830T123600Z\nX-Amz-Security-Token:AQoDYXdzEPT//////////"
     "wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/"
     "kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+"
     "xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==",
     "c237e1b440d4c63c32ca95b5b99481081cb7b13c7e40434868e71567c1a882f6",
     "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"},
};

std::string header(const Request& request, std::string_view name) {
    std::string found;
    for (const Header& one : request.headers) {
        if (one.name == name) found += one.value;
    }
    return found;
}

TEST(Signature, each_vector_of_the_published_suite_is_reproduced) {
    for (const Vector& vector : suite) {
        const Request request = parse_request_file(vector.request);
        const std::string canonical = signature::canonical_request(request);
        EXPECT_EQ(signature::sha256_hex(canonical), vector.canonical_request_hash) << vector.name << "\n" << canonical;
        const std::string to_sign = signature::string_to_sign(canonical, suite_scope, suite_time);
        EXPECT_EQ(to_sign, "AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/us-east-1/service/aws4_request\n" +
                               vector.canonical_request_hash);
        EXPECT_EQ(signature::signature_of(
                      to_sign, signature::signing_key(suite_credentials.secret_access_key, suite_scope, suite_time)),
                  vector.signature)
            << vector.name;
    }
}

TEST(Signature, a_canonical_request_is_as_published) {
    const Request request = parse_request_file(
        "GET / HTTP/1.1\nHost:example.amazonaws.com\nMy-Header1:  value1\nMy-Header2: \"a   b   "
        "c\"\nX-Amz-Date:20150830T123600Z");
    EXPECT_EQ(signature::canonical_request(request),
              "GET\n/\n\nhost:example.amazonaws.com\nmy-header1:value1\nmy-header2:\"a b c\"\n"
              "x-amz-date:20150830T123600Z\n\nhost;my-header1;my-header2;x-amz-date\n"
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Signature, the_authorization_header_is_as_published) {
    Request request{.method = "GET", .headers = {{"Host", "example.amazonaws.com"}}};
    sign(request, suite_credentials, suite_scope, suite_time);
    EXPECT_EQ(header(request, "authorization"),
              "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
              "SignedHeaders=host;x-amz-date, "
              "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
    EXPECT_EQ(header(request, "x-amz-date"), "20150830T123600Z");
}

TEST(Signature, a_session_token_is_sent_and_signed) {
    const Vector& vector = suite.back();
    ASSERT_EQ(vector.name, "post-sts-header-before");
    Request request = parse_request_file(vector.request);
    Credentials credentials = suite_credentials;
    credentials.session_token = header(request, "X-Amz-Security-Token");
    sign(request, credentials, suite_scope, suite_time);
    EXPECT_EQ(header(request, "x-amz-security-token"), credentials.session_token);
    EXPECT_TRUE(header(request, "authorization").ends_with("Signature=" + vector.signature));
}

TEST(Signature, a_request_signed_again_has_the_later_signature_only) {
    Request request{.method = "GET", .headers = {{"Host", "example.amazonaws.com"}}};
    Credentials temporary = suite_credentials;
    temporary.session_token = "token";
    sign(request, temporary, suite_scope, suite_time - std::chrono::hours{30});
    sign(request, suite_credentials, suite_scope, suite_time);
    EXPECT_EQ(request.headers.size(), 3U);
    EXPECT_TRUE(header(request, "authorization")
                    .ends_with("Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"));
}

TEST(Signature, a_remembered_key_is_that_of_its_secret_and_day) {
    const Credentials other{"AKIDOTHER", "another secret"};
    Signer signer{suite_scope};
    for (const auto& [credentials, time] :
         std::initializer_list<std::pair<Credentials, Time>>{{suite_credentials, suite_time},
                                                             {suite_credentials, suite_time + std::chrono::seconds{1}},
                                                             {suite_credentials, suite_time + std::chrono::hours{24}},
                                                             {other, suite_time + std::chrono::hours{24}},
                                                             {other, suite_time},
                                                             {suite_credentials, suite_time}}) {
        Request expected{.method = "POST", .headers = {{"Host", "example.amazonaws.com"}}, .body = "{}"};
        Request request = expected;
        sign(expected, credentials, suite_scope, time);
        signer.sign(request, credentials, time);
        EXPECT_EQ(request.headers, expected.headers) << varve::to_string(time);
    }
}

TEST(Signature, the_documented_request_to_iam_has_the_documented_signature) {
    const Scope iam{"us-east-1", "iam"};
    Request request{.method = "GET",
                    .query = "Action=ListUsers&Version=2010-05-08",
                    .headers = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"},
                                {"Host", "iam.amazonaws.com"},
                                {"X-Amz-Date", "20150830T123600Z"}}};
    EXPECT_EQ(signature::sha256_hex(signature::canonical_request(request)),
              "f536975d06c0309214f805bb90ccff089219ecd68b2577efef23edd43b7e1a59");
    sign(request, suite_credentials, iam, suite_time);
    EXPECT_EQ(header(request, "authorization"),
              "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
              "SignedHeaders=content-type;host;x-amz-date, "
              "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7");
}

}  // namespace
}  // namespace varve::dynamodb
