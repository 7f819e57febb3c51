class SessionsMcp < Formula
  desc "@DESCRIPTION@"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]
@SYSTEMS@
  def install
    bin.install "sessions"
    generate_completions_from_executable(bin/"sessions", "completions")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/sessions --version")
  end
end
