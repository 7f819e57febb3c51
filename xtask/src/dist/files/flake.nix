{
  description = "@DESCRIPTION@";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      archives = {
@SYSTEMS@
      };
      package =
        system:
        let
          pkgs = nixpkgs.legacyPackages.${system};
        in
        pkgs.stdenv.mkDerivation {
          pname = "@PACKAGE@";
          version = "@VERSION@";
          src = pkgs.fetchurl archives.${system};
          nativeBuildInputs = pkgs.lib.optional pkgs.stdenv.isLinux pkgs.autoPatchelfHook;
          buildInputs = [ pkgs.stdenv.cc.cc.lib ];
          installPhase = "install -Dm755 sessions $out/bin/sessions";
          meta = {
            homepage = "@HOMEPAGE@";
            mainProgram = "sessions";
          };
        };
    in
    {
      packages = builtins.mapAttrs (system: _: { default = package system; }) archives;
    };
}
